/** Line icons on a 16-unit grid, drawn with the current text color. */

const PATHS = {
  undo: "M5.5 3 2.5 6l3 3M2.8 6H10a3.5 3.5 0 0 1 0 7H6.5",
  redo: "M10.5 3l3 3-3 3M13.2 6H6a3.5 3.5 0 0 0 0 7h3.5",
  run: "M5 3.2v9.6l7.6-4.8z",
  stop: "M4.5 4.5h7v7h-7z",
  save: "M3 3h8l2 2v8H3zM5.5 3v3.2h4.6V3M5 13V9.2h6V13",
  fit: "M6 2.5H2.5V6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  fold: "M3 2.8h10M3 13.2h10M8 4.6v2.6M6.3 5.8 8 7.5l1.7-1.7M8 11.4V8.8M6.3 10.2 8 8.5l1.7 1.7",
  flowDown: "M8 2.5v10M4.8 9.3 8 12.5l3.2-3.2M2.5 2.5h3M10.5 2.5h3",
  flowRight: "M2.5 8h10M9.3 4.8 12.5 8l-3.2 3.2M2.5 2.5v3M2.5 10.5v3",
  columns: "M2.5 2.5h4v11h-4zM9.5 2.5h4v11h-4zM4.5 5v6M11.5 5v6",
  compare: "M3 5.5h9.5M10 3l2.5 2.5L10 8M13 10.5H3.5M6 8l-2.5 2.5L6 13",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  left: "M10 4 6 8l4 4",
  right: "M6 4l4 4-4 4",
  close: "M4 4l8 8M12 4l-8 8",
  panel: "M2.5 3h11v10h-11zM9.8 3v10",
  error: "M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4zM8 4.8v4M8 11v.4",
  warning: "M8 2 14.5 13.5h-13zM8 6.5v3.4M8 11.6v.3",
  info: "M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4zM8 7.4v3.9M8 4.8v.3",
  check: "M3 8.5l3.2 3.2L13 4.8",
  reset: "M3.2 6.6A5.2 5.2 0 1 1 2.9 9.3M3 3v3.7h3.7",
  trash: "M3 4.5h10M6.3 4.3V2.8h3.4v1.5M4.3 4.7l.6 8.5h6.2l.6-8.5M6.7 7v4M9.3 7v4",
  from: "M13 8H4M7.5 4.5 4 8l3.5 3.5",
  to: "M3 8h9M8.5 4.5 12 8l-3.5 3.5",
  enter: "M9.5 3H13v10H9.5M3 8h6.5M7 5.5 9.5 8 7 10.5",
  copy: "M5.5 5.5h7.5v7.5H5.5zM10.5 5.5V3H3v7.5h2.5",
  clock: "M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4zM8 4.6V8l2.4 1.6",
  plus: "M8 3v10M3 8h10",
  expand: "M9.5 6.5 13.5 2.5M10 2.5h3.5V6M6.5 9.5l-4 4M2.5 10v3.5H6",
  tree: "M3 3.2h4M3 3.2v9.6h3.5M3 8h3.5M8.5 3.2H13M8.5 8H13M8.5 12.8H13",
  timer: "M8 14a5.2 5.2 0 1 0 0-10.4A5.2 5.2 0 0 0 8 14zM8 8.8V5.6M6.4 1.8h3.2",
  dims: "M2.5 4v8M13.5 4v8M2.5 8h11M5 5.8 2.8 8 5 10.2M11 5.8 13.2 8 11 10.2",
  eye: "M1.8 8S4 3.8 8 3.8 14.2 8 14.2 8 12 12.2 8 12.2 1.8 8 1.8 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z",
  table: "M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.6h11M6.5 6.3V13",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="ol-icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill={name === "run" || name === "stop" ? "currentColor" : "none"} />
    </svg>
  );
}
