/** The channel to the kernel, reduced to what the client needs, so that tests and the development page can fake it. */

export interface Message {
  content: Record<string, unknown>;
  buffers: DataView[];
}

export interface Transport {
  /** Throws when the channel is closed. */
  send(content: Record<string, unknown>): void;
  /** Calls back on each message; returns the function that stops it. */
  onMessage(listener: (message: Message) => void): () => void;
  /** Calls back when the channel closed ("closed") or something happened to it that makes it worth asking ("doubt"). */
  onState(listener: (state: "closed" | "doubt") => void): () => void;
}

/** The part of anywidget's model that the widget uses. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
  on(event: string, listener: (...args: never[]) => void): void;
  off(event: string, listener: (...args: never[]) => void): void;
  widget_manager?: unknown;
}

/** A transport over the widget's comm. */
export function commTransport(model: WidgetModel): Transport {
  return {
    send: (content) => model.send(content),
    onMessage(listener) {
      const onCustom = (content: unknown, buffers?: unknown) => {
        if (typeof content === "object" && content !== null) {
          listener({ content: content as Record<string, unknown>, buffers: asViews(buffers) });
        }
      };
      return listen(model, "msg:custom", onCustom);
    },
    onState(listener) {
      // ipywidgets tells of a restarted kernel by comm_live_update, without saying which way it went.
      const offs = [
        listen(model, "comm_live_update", () => listener("doubt")),
        listen(model, "destroy", () => listener("closed")),
        listen(model, "comm:close", () => listener("closed")),
      ];
      return () => offs.forEach((off) => off());
    },
  };
}

/** Calls `model.on`; returns the function that calls its `off`. */
export function listen(model: WidgetModel, event: string, listener: (...args: never[]) => void): () => void {
  model.on(event, listener);
  return () => model.off(event, listener);
}

/** Front ends hand buffers over as DataViews, ArrayBuffers or typed arrays; anything else counts as absent. */
function asViews(buffers: unknown): DataView[] {
  if (!Array.isArray(buffers)) return [];
  return buffers.flatMap((buffer: unknown) => {
    if (buffer instanceof DataView) return [buffer];
    if (ArrayBuffer.isView(buffer)) return [new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)];
    return buffer instanceof ArrayBuffer ? [new DataView(buffer)] : [];
  });
}
