/** Measures by which one drawing of a graph is better than another, alike for every layout engine. */

export interface Point {
  x: number;
  y: number;
}

export interface Rectangle extends Point {
  width: number;
  height: number;
}

/** A finished drawing: boxes by index, and for each arc its ends and the corners of its line. */
export interface Drawing {
  boxes: Rectangle[];
  arcs: { from: number; to: number; line: Point[] }[];
}

export interface Quality {
  crossings: number;
  /** Pixels, each arc by itself, also where arcs share a line. */
  length: number;
  overlaps: number;
}

export function quality(drawing: Drawing): Quality {
  return { crossings: crossings(drawing), length: length(drawing), overlaps: overlaps(drawing.boxes) };
}

function length({ arcs }: Drawing): number {
  let sum = 0;
  for (const { line } of arcs) {
    for (let i = 1; i < line.length; i++) sum += Math.hypot(line[i]!.x - line[i - 1]!.x, line[i]!.y - line[i - 1]!.y);
  }
  return sum;
}

interface Piece {
  arc: number;
  a: Point;
  b: Point;
}

/** Pairs of arcs without a common end whose lines cross, counted once for each place where they do. */
function crossings({ arcs }: Drawing): number {
  const pieces: Piece[] = [];
  arcs.forEach(({ line }, arc) => {
    for (let i = 1; i < line.length; i++) {
      const [p, q] = [line[i - 1]!, line[i]!];
      pieces.push(p.y <= q.y ? { arc, a: p, b: q } : { arc, a: q, b: p });
    }
  });
  pieces.sort((p, q) => p.a.y - q.a.y);
  let count = 0,
    active: Piece[] = [];
  for (const piece of pieces) {
    active = active.filter((other) => other.b.y >= piece.a.y);
    const pieceArc = arcs[piece.arc]!;
    for (const other of active) {
      const arc = arcs[other.arc]!;
      if (arc.from === pieceArc.from || arc.to === pieceArc.to || arc.from === pieceArc.to || arc.to === pieceArc.from)
        continue;
      if (cross(piece, other)) count++;
    }
    active.push(piece);
  }
  return count;
}

/** Whether two pieces cross in a point inside both. */
function cross(p: Piece, q: Piece): boolean {
  return side(p.a, p.b, q.a) * side(p.a, p.b, q.b) < 0 && side(q.a, q.b, p.a) * side(q.a, q.b, p.b) < 0;
}

function side(a: Point, b: Point, p: Point): number {
  const turn = (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
  return Math.abs(turn) < 1e-6 ? 0 : Math.sign(turn);
}

function overlaps(boxes: Rectangle[]): number {
  const sorted = [...boxes].sort((a, b) => a.y - b.y);
  let count = 0;
  sorted.forEach((a, i) => {
    for (let k = i + 1; k < sorted.length && sorted[k]!.y < a.y + a.height - 0.5; k++) {
      const b = sorted[k]!;
      if (a.x + a.width - 0.5 > b.x && b.x + b.width - 0.5 > a.x) count++;
    }
  });
  return count;
}
