import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeKernel, type Weather } from "../../dev/fake_kernel.ts";
import { FakeModel } from "../../dev/fake_model.ts";
import type { Connection } from "../../src/kernel/channel.ts";
import { Client } from "../../src/kernel/client.ts";
import type { RequestError } from "../../src/kernel/request_error.ts";
import type { Message, Transport } from "../../src/kernel/transport.ts";
import { Store } from "../../src/model/store.ts";

const QUICK = { slow: 40, ping: 60, silent: 150, doubt: 80, gap: 5 };

function connect(weather: Weather = {}) {
  const kernel = new FakeKernel(new FakeModel({ blocks: [1, 1], control: false }), weather);
  const store = new Store();
  const client = new Client(kernel.transport, store, QUICK);
  return { kernel, store, client };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition: () => boolean, expectation: string, ms = 3000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) assert.fail(`not within ${ms} ms: ${expectation}`);
    await pause(5);
  }
}

/** The content of the store, to be compared with that of the kernel. */
function picture(store: Store, kernel: FakeKernel): [unknown, unknown] {
  const nodes = (all: Iterable<{ id: number; name: string; inputs: number[] }>) =>
    [...all].map(({ id, name, inputs }) => [id, name, inputs]).sort((a, b) => (a[0] as number) - (b[0] as number));
  const labels = (all: Iterable<{ id: number; label: string }>) => [...all].map(({ id, label }) => [id, label]).sort();
  return [
    [nodes(store.nodes.values()), labels(store.values.values())],
    [nodes(kernel.model.nodes.values()), labels(kernel.model.values.values())],
  ];
}

function firstConv(store: Store): number {
  return [...store.nodes.values()].find((node) => node.op === "Conv")!.id;
}

function attribute(node: number, name: string, value: number | number[]) {
  const parameters = { name, value: { type: Array.isArray(value) ? "ints" : "int", value } };
  return { edit: "set_attribute", on: "node", subject: [node], parameters };
}

function rename(node: number, name: string) {
  return { edit: "rename_node", on: "node", subject: [node], parameters: { name } };
}

test("an edit is in the store when its promise resolves", async () => {
  const { kernel, store, client } = connect();
  await client.start();
  assert.equal(client.connection, "ready");
  await client.edit("edit", attribute(firstConv(store), "strides", [1, 1]));
  assert.equal(store.version, 2);
  assert.equal(store.history.undo, "set strides");
  const output = store.nodes.get(firstConv(store))!.outputs[0]!;
  assert.equal(store.values.get(output)?.label, "1×64×224×224");
  await client.edit("undo", {});
  assert.equal(store.values.get(output)?.label, "1×64×112×112");
  assert.deepEqual(...picture(store, kernel));
  client.dispose();
});

test("an error reply rejects with code, message and hint", async () => {
  const { store, client } = connect();
  await client.start();
  const refused = client.edit("edit", attribute(firstConv(store), "group", 0));
  await assert.rejects(
    refused,
    (error: RequestError) => error.code === "edit" && /group is 0/.test(error.message) && error.hint !== "",
  );
  assert.equal(store.version, 1);
  client.dispose();
});

test("the model is asked for with the greeting, and again where buffers do not arrive", async () => {
  for (const binary of [true, false]) {
    const { kernel, store } = connect({ binary });
    const requests: unknown[] = [];
    const transport: Transport = {
      ...kernel.transport,
      send: (content) => {
        requests.push(content.method);
        kernel.transport.send(content);
      },
    };
    const client = new Client(transport, store, QUICK);
    const started = client.start();
    assert.deepEqual(requests, ["hello", "snapshot"], "before anything is answered");
    await started;
    assert.equal(requests.filter((method) => method === "snapshot").length, binary ? 1 : 2);
    assert.deepEqual(...picture(store, kernel));
    client.dispose();
  }
});

test("without binary buffers the model comes as base64", async () => {
  const { kernel, store, client } = connect({ binary: false });
  await client.start();
  assert.deepEqual(...picture(store, kernel));
  client.dispose();
});

test("two views of one channel do not take each other's replies", async () => {
  const { kernel, client } = connect();
  const other = new Client(kernel.transport, new Store(), QUICK);
  await Promise.all([client.start(), other.start()]);
  await client.edit("undo", {}).catch(() => undefined);
  const node = firstConv(client.store);
  await client.edit("edit", rename(node, "seen by both"));
  await until(() => other.store.nodes.get(node)?.name === "seen by both", "the other view follows");
  client.dispose();
  other.dispose();
});

test("a view that shows another model says so, also where the event is lost and a snapshot tells", async () => {
  for (const lost of [false, true]) {
    const { kernel, client, store } = connect();
    await client.start();
    const formers: string[] = [];
    client.on("opened", ({ former }) => formers.push(former));
    kernel.showAnother(lost);
    if (lost) await client.edit("edit", rename(firstConv(store), "shows the gap")).catch(() => undefined);
    await until(() => formers.length > 0, "the view begins anew");
    assert.deepEqual([...new Set(formers)], ["resnet34"]);
    client.dispose();
    const next = new Client(kernel.transport, new Store(), QUICK);
    await next.start();
    assert.equal(next.former, "resnet34");
    next.dispose();
  }
});

test("dropped, repeated and reordered messages: the store converges to the model", async () => {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  let calm = false;
  const mangle = (message: Message, deliver: (message: Message) => void) => {
    const fate = calm ? 1 : random();
    if (fate < 0.1) return;
    deliver(message);
    if (fate < 0.2) deliver(message);
    else if (fate < 0.3) setTimeout(() => deliver(message), 15);
  };
  const { kernel, store, client } = connect({ mangle });
  await client.start();
  const nodes = [...store.nodes.keys()];
  for (let i = 0; i < 60; i++) {
    const node = nodes[Math.floor(random() * nodes.length)]!;
    const edit = i % 5 === 4 ? client.edit("undo", {}) : client.edit("edit", rename(node, `renamed ${i}`));
    edit.catch(() => undefined);
    await pause(8);
  }
  calm = true;
  kernel.edit({ label: "from Python", apply: () => ({}), revert: () => ({}) });
  await until(
    () => store.version === kernel.version && client.connection === "ready",
    "the version of the kernel",
    5000,
  );
  assert.deepEqual(...picture(store, kernel));
  client.dispose();
});

test("a lost reply to an edit is told as lost, a lost question is asked again", async () => {
  let lose = false;
  const mangle = (message: Message, deliver: (message: Message) => void) => {
    if (lose && message.content.method !== undefined) lose = false;
    else deliver(message);
  };
  const { store, client } = connect({ mangle });
  await client.start();
  lose = true;
  const info = await client.request("inspect", { node: firstConv(store) });
  assert.equal(info.op_type, "Conv");
  lose = true;
  await assert.rejects(
    client.edit("edit", rename(firstConv(store), "x")),
    (error: RequestError) => error.code === "lost",
  );
  client.dispose();
});

test("a busy kernel is waited for, and said to be busy", async () => {
  const { kernel, store, client } = connect();
  await client.start();
  const seen: Connection[] = [];
  client.on("connection", (connection) => seen.push(connection));
  kernel.setBusy(true);
  const edit = client.edit("edit", rename(firstConv(store), "later"));
  await until(() => client.connection === "waiting", "waiting");
  await until(() => client.connection === "silent", "silent");
  assert.equal(client.editable, true);
  kernel.setBusy(false);
  await edit;
  assert.deepEqual(seen, ["waiting", "silent", "ready"]);
  assert.equal(store.nodes.get(firstConv(store))?.name, "later");
  client.dispose();
});

test("a closed channel keeps the picture and ends editing", async () => {
  const { kernel, store, client } = connect();
  await client.start();
  kernel.setBusy(true);
  const edit = client.edit("undo", {});
  kernel.die();
  await assert.rejects(edit, (error: RequestError) => error.code === "disconnected");
  assert.equal(client.connection, "gone");
  assert.equal(client.editable, false);
  assert.ok(store.nodes.size > 0);
  await assert.rejects(client.request("save", {}), (error: RequestError) => error.code === "disconnected");
});

test("doubt about the channel ends with gone when no kernel answers, and with ready when one does", async () => {
  const { kernel } = connect();
  let raise: (state: "doubt") => void = () => undefined;
  const transport: Transport = {
    ...kernel.transport,
    onState(listener) {
      raise = listener;
      return () => undefined;
    },
  };
  const client = new Client(transport, new Store(), QUICK);
  await client.start();
  raise("doubt");
  await pause(150);
  assert.equal(client.connection, "ready");
  kernel.setBusy(true);
  raise("doubt");
  await until(() => client.connection === "gone", "gone");
});

test("a channel that throws on send is gone at once", async () => {
  const transport: Transport = {
    send: () => {
      throw new Error("Cannot send");
    },
    onMessage: () => () => undefined,
    onState: () => () => undefined,
  };
  const client = new Client(transport, new Store(), QUICK);
  await assert.rejects(client.start(), (error: RequestError) => error.code === "disconnected");
  assert.equal(client.connection, "gone");
});

test("a run reports progress and can be stopped by its id", async () => {
  const { client, store } = connect();
  await client.start();
  let progress = 0;
  client.on("progress", () => progress++);
  const run = client.begin("run", { nodes: [...store.nodes.keys()] });
  await until(() => progress > 0, "progress");
  const stopped = client.request("stop", { run: run.id });
  await assert.rejects(run.reply, (error: RequestError) => error.code === "stopped");
  assert.deepEqual(await stopped, { stopped: true });
  client.dispose();
});

test("another protocol is refused with what to do", async () => {
  const { kernel } = connect();
  const inner = kernel.transport;
  const transport: Transport = {
    ...inner,
    onMessage: (listener) =>
      inner.onMessage((message) => {
        const result = message.content.result as { protocol?: number } | undefined;
        if (result?.protocol) result.protocol = 99;
        listener(message);
      }),
  };
  const client = new Client(transport, new Store(), QUICK);
  await assert.rejects(client.start(), /protocol 99, this page 1/);
  client.dispose();
});

test("messages that are none of ours are ignored", async () => {
  const { kernel, client, store } = connect();
  await client.start();
  const listeners: ((message: Message) => void)[] = [];
  const transport: Transport = {
    ...kernel.transport,
    onMessage: (listener) => {
      listeners.push(listener);
      return () => undefined;
    },
  };
  const other = new Client(transport, store, QUICK);
  for (const content of [{}, { id: "x" }, { id: 5, result: 1 }, { event: 7, seq: 1 }, { event: "commit" }]) {
    for (const listener of listeners) listener({ content, buffers: [] });
  }
  assert.equal(store.version, 1);
  client.dispose();
  other.dispose();
});

test("dispose leaves no timer behind and rejects what is pending", async () => {
  const { kernel, client } = connect();
  await client.start();
  kernel.setBusy(true);
  const pending = client.request("save", {});
  client.dispose();
  await assert.rejects(pending, (error: RequestError) => error.code === "disconnected");
});
