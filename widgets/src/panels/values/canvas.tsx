/** A tensor as a small canvas of its own pixels, scaled without smoothing. */

import { useEffect, useRef } from "preact/hooks";
import { pixels, type Scale } from "../../look/color_map.ts";
import type { Drawn } from "../../look/tensor_state.ts";

interface Props {
  drawn: Drawn;
  label: string;
  gray?: boolean;
  /** The scale of colors, where other pictures share it. */
  scale?: Scale | undefined;
  class?: string;
  onPick?: (row: number, column: number) => void;
}

export function TensorCanvas({ drawn, label, gray, scale, class: name = "", onPick }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { picture, bytes } = drawn;
  useEffect(() => {
    const element = canvas.current,
      context = element?.getContext("2d");
    if (!element || !context) return;
    element.width = picture.width;
    element.height = picture.height;
    context.putImageData(new ImageData(pixels(picture, bytes, gray, scale), picture.width, picture.height), 0, 0);
  }, [drawn, gray, scale?.[0], scale?.[1]]);
  const pick = (event: MouseEvent) => {
    const place = (event.currentTarget as HTMLElement).getBoundingClientRect();
    onPick?.((event.clientY - place.top) / place.height, (event.clientX - place.left) / place.width);
  };
  return (
    <canvas
      ref={canvas}
      class={`ol-tensor-canvas ${name}`}
      role="img"
      aria-label={label}
      onClick={onPick && pick}
      style={{ aspectRatio: `${picture.width} / ${picture.height}` }}
      data-testid="tensor-canvas"
    />
  );
}
