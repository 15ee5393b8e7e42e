/** The height of an element that scrolls, for lists that make only the rows in sight. */

import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Height in pixels, `first` until the element is there. */
export function useVisibleHeight(scroll: RefObject<HTMLElement | null>, first: number): number {
  const [height, setHeight] = useState(first);
  useEffect(() => {
    const element = scroll.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return height;
}
