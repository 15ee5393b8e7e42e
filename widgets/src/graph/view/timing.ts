/** The times of frames, on the page's own timeline, where tests and measures find them. */

/** The browser keeps every mark: they are cleared every so many, or a long session would fill its memory with them. */
const MARKS_KEPT = 1000;

export interface FrameTiming {
  /** Frames drawn so far. */
  frames: number;
  boxes: number;
  /** Milliseconds of all layouts so far, and of this frame's drawing. */
  layoutMs: number;
  paintMs: number;
}

export function noteFrame(timing: FrameTiming): void {
  if (timing.frames % MARKS_KEPT === 0) performance.clearMarks("onnxlab:frame");
  performance.mark("onnxlab:frame", { detail: timing });
}
