/** The canvas on the page: its size in device pixels, and one repaint per animation frame at most. */

export interface SurfaceOptions {
  /** Called in an animation frame after `invalidate`. */
  paint(): void;
  /** Called with the new size in CSS pixels, before the next paint. */
  resize(width: number, height: number): void;
}

/** The distance from the screen at which a picture is still painted, so that it is there when it is scrolled to. */
const MARGIN = "200px";

export class Surface {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  readonly #element: HTMLElement;
  readonly #options: SurfaceOptions;
  readonly #observer: ResizeObserver;
  readonly #watcher: IntersectionObserver | null = null;
  #frame = 0;
  /** Whether the canvas is scrolled away, or its page not shown: nothing is painted until it comes back. */
  #away = false;
  #stale = false;

  /** Throws Error where the browser gives no 2D context. */
  constructor(element: HTMLElement, options: SurfaceOptions) {
    this.#element = element;
    this.#options = options;
    this.canvas = element.ownerDocument.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    Object.assign(this.canvas.style, {
      position: "absolute",
      inset: "0",
      width: "100%",
      height: "100%",
      display: "block",
    });
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser gives no 2D canvas, which the graph is drawn on");
    this.context = context;
    element.append(this.canvas);
    this.#observer = new ResizeObserver(() => this.measure());
    this.#observer.observe(element);
    if (typeof IntersectionObserver !== "undefined") {
      this.#watcher = new IntersectionObserver((entries) => this.#moved(entries[entries.length - 1]!.isIntersecting), {
        rootMargin: MARGIN,
      });
      this.#watcher.observe(element);
    }
    this.measure();
  }

  get pixelRatio(): number {
    return this.#element.ownerDocument.defaultView?.devicePixelRatio || 1;
  }

  /** Takes over the size of the element; repaints if it changed. */
  measure(): void {
    const { clientWidth, clientHeight } = this.#element;
    const width = Math.max(1, Math.round(clientWidth * this.pixelRatio));
    const height = Math.max(1, Math.round(clientHeight * this.pixelRatio));
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.#options.resize(Math.max(1, clientWidth), Math.max(1, clientHeight));
    // A resized canvas is blank: paint before the browser shows it.
    this.paintNow();
  }

  #moved(near: boolean): void {
    this.#away = !near;
    if (near && this.#stale) this.invalidate();
  }

  /** Paints soon; while the picture is out of sight, when it comes back, unless that is a `must`. */
  invalidate(must = false): void {
    this.#stale = this.#away && !must;
    if (this.#stale) return;
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.paintNow());
  }

  paintNow(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#options.paint();
  }

  destroy(): void {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#watcher?.disconnect();
    this.canvas.remove();
  }
}
