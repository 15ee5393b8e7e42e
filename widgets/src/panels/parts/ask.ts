/** Fetches what a panel shows from the kernel, again after every change, without flicker. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Method, Params, Result } from "../../kernel/protocol.ts";
import { asRequestError, type RequestError } from "../../kernel/request_error.ts";

export interface Answer<T> {
  /** The last answer; while a newer one is on its way the old one stays. Null before the first. */
  data: T | null;
  error: RequestError | null;
}

/**
 * The kernel's answer to a request about `key` (a node or value id): asked at once, after each commit and after each
 * snapshot. Answers that arrive out of order are dropped.
 */
export function useAnswer<M extends Method>(app: App, method: M, params: Params<M>, key: number): Answer<Result<M>> {
  const [answer, setAnswer] = useState<Answer<Result<M>> & { key: number }>({ data: null, error: null, key: 0 });
  useEffect(() => {
    let latest = 0;
    let live = true;
    const ask = () => {
      const turn = ++latest;
      app.client.request(method, params).then(
        (data) => {
          if (live && turn === latest) setAnswer({ data, error: null, key });
        },
        (error) => {
          // A kernel that is gone leaves the last answer standing: better than an empty panel.
          if (live && turn === latest)
            setAnswer((old) => ({ data: old.key === key ? old.data : null, error: asRequestError(error), key }));
        },
      );
    };
    ask();
    const offs = [app.store.on("commit", ask), app.store.on("reset", ask)];
    return () => {
      live = false;
      offs.forEach((off) => off());
    };
  }, [app, method, key]);
  return answer.key === key ? answer : { data: null, error: null };
}
