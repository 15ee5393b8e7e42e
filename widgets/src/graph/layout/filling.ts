/** The limits between which a picture fills a canvas. */

/** Shares of the sides of a canvas, the longer one first, that a picture should fill. */
const LONG = 0.65,
  SHORT = 0.34;

/** The zoom from which on something fills a canvas. */
export function filling(width: number, height: number, canvas: { width: number; height: number }): number {
  const across = canvas.width / Math.max(1, width),
    along = canvas.height / Math.max(1, height);
  return Math.min(Math.max(LONG * across, SHORT * along), Math.max(SHORT * across, LONG * along));
}
