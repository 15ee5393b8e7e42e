/** One side of a view of two models: its messages travel over the widget's one channel, under the side's name. */

import { commTransport, type Transport, type WidgetModel } from "../kernel/transport.ts";

export function sideTransport(model: WidgetModel, side: string): Transport {
  const channel = commTransport(model);
  return {
    send: (message) => channel.send({ side, message }),
    onMessage: (listener) =>
      channel.onMessage(({ content, buffers }) => {
        const { message } = content;
        if (content.side === side && typeof message === "object" && message !== null)
          listener({ content: message as Record<string, unknown>, buffers });
      }),
    onState: (listener) => channel.onState(listener),
  };
}
