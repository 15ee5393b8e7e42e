/** Names of groups from far away. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera } from "../../src/graph/canvas/camera.ts";
import { isMap, paintMapLabels } from "../../src/graph/canvas/map_labels.ts";
import { TextFitter } from "../../src/graph/canvas/text.ts";
import type { Palette } from "../../src/graph/canvas/theme.ts";
import { SceneIndex } from "../../src/graph/canvas/visible.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { transformer } from "../fixtures/networks.ts";
import { sceneOf } from "../fixtures/scenes.ts";

/** The written titles, with the middle of each. */
function written(zoom: number): { title: string; x: number; y: number }[] {
  const store = transformer(6).store(),
    hierarchy = new Hierarchy(store, 1),
    scene = sceneOf(store, hierarchy, new Set(hierarchy.containers.keys()));
  const camera = Object.assign(new Camera(), { width: 900, height: 600, zoom }),
    list = new SceneIndex(scene).visible(camera.view, zoom);
  const drawn: { title: string; x: number; y: number }[] = [];
  const ctx = {
    fillText: (title: string, x: number, y: number) => drawn.push({ title, x, y }),
    strokeText: () => undefined,
  } as unknown as CanvasRenderingContext2D;
  const text = new TextFitter({ font: "", measureText: (words) => ({ width: 7 * words.length }) }, "sans-serif");
  paintMapLabels(ctx, text, { text: "black", ground: "white" } as Palette, scene, list, camera);
  return drawn;
}

test("frames have names at the size of the screen where title bars are too low, and none covers another", () => {
  assert.ok(isMap(0.2) && !isMap(0.6));
  for (const zoom of [0.05, 0.15, 0.3]) {
    const labels = written(zoom);
    assert.ok(labels.length > 0, `${zoom}`);
    labels.forEach((label, i) =>
      labels.slice(0, i).forEach((other) => {
        const near = (7 * (label.title.length + other.title.length)) / 2;
        assert.ok(
          Math.abs(label.y - other.y) >= 17 || Math.abs(label.x - other.x) >= near,
          `${label.title} on ${other.title}`,
        );
      }),
    );
  }
  assert.ok(written(0.3).some(({ title }) => title.includes("layer")));
});
