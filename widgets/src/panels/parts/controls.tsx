/** Small controls that several panels share. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { asRequestError } from "../../kernel/request_error.ts";
import { Icon, type IconName } from "./icons.tsx";

interface ToolButtonProps {
  icon: IconName;
  title: string;
  testid?: string;
  label?: string;
  disabled?: boolean;
  pressed?: boolean;
  onClick: () => void;
  children?: ComponentChildren;
}

/** A button with an icon; its title is also its name for screen readers. */
export function ToolButton({ icon, title, testid, label, disabled, pressed, onClick, children }: ToolButtonProps) {
  return (
    <button
      type="button"
      class="ol-button"
      title={title}
      aria-label={label ? undefined : title}
      data-testid={testid}
      disabled={disabled}
      aria-pressed={pressed}
      onClick={onClick}
    >
      <Icon name={icon} />
      {label && <span>{label}</span>}
      {children}
    </button>
  );
}

/** Text of the model, cut with an ellipsis where it is too long and whole in the tooltip. */
export function Elided({ text, class: name = "", middle = false }: { text: string; class?: string; middle?: boolean }) {
  if (!middle || text.length < 24)
    return (
      <span class={`ol-elided ${name}`} title={text}>
        {text}
      </span>
    );
  // Names differ at their ends: the beginning gives way, the last part stays.
  const cut = text.length - tailLength(text);
  return (
    <span class={`ol-elided-middle ${name}`} title={text}>
      <span class="ol-elided">{text.slice(0, cut)}</span>
      <span>{text.slice(cut)}</span>
    </span>
  );
}

/** The last step of a path where that is short, else a few characters. */
function tailLength(text: string): number {
  const step = text.length - Math.max(text.lastIndexOf("/"), text.lastIndexOf(".")) - 1;
  return step >= 4 && step <= 18 ? step : Math.min(14, text.length >> 1);
}

interface TextFieldProps {
  value: string;
  label: string;
  testid?: string;
  errorTestid?: string;
  placeholder?: string;
  disabled?: boolean;
  mono?: boolean;
  numeric?: boolean;
  /** Focuses the field and selects its text when it turns true. */
  grab?: boolean;
  onGrabbed?: () => void;
  /** The fault of the text, "" when there is none; asked at every keystroke. */
  check?: (text: string) => string;
  /** Makes the change; a RequestError is shown beside the field and the text stays for mending. */
  commit: (text: string) => Promise<void>;
}

/**
 * A field that changes the model on Enter or when left, and goes back on Escape.
 *
 * While its text is what the model holds it carries data-clean, and Ctrl+Z belongs to the model, not to the text.
 */
export function TextField(props: TextFieldProps) {
  const { value, check, commit, grab } = props;
  const [draft, setDraft] = useState<string | null>(null);
  const [refusal, setRefusal] = useState("");
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const text = draft ?? value;
  const clean = draft === null || draft === value;
  const error = refusal || (clean || !check ? "" : check(text));

  useLayoutEffect(() => {
    // The model changed under an untouched or refused field: its new value is what counts. An effect after painting
    // would come after what is typed at once into a field that has just appeared.
    setDraft(null);
    setRefusal("");
  }, [value]);
  useLayoutEffect(() => {
    // The text is selected before it is painted: letters may follow F2 at once.
    if (!grab || !input.current) return;
    input.current.focus();
    input.current.select();
    props.onGrabbed?.();
  }, [grab]);

  const finish = async () => {
    if (clean || busy) return;
    const wrong = check?.(text) ?? "";
    if (wrong) return;
    setBusy(true);
    try {
      await commit(text);
      setDraft(null);
      setRefusal("");
    } catch (problem) {
      setRefusal(asRequestError(problem).sentence);
    } finally {
      setBusy(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      event.preventDefault();
      void finish();
    } else if (event.key === "Escape" && (!clean || error)) {
      event.stopPropagation();
      setDraft(null);
      setRefusal("");
    }
  };
  return (
    <div class="ol-field">
      <input
        ref={input}
        type="text"
        class={`ol-input ${props.mono ? "ol-mono" : ""}`}
        value={text}
        size={1}
        inputMode={props.numeric ? "decimal" : undefined}
        spellcheck={false}
        autocomplete="off"
        placeholder={props.placeholder}
        disabled={props.disabled}
        title={text}
        aria-label={props.label}
        aria-invalid={error !== ""}
        aria-busy={busy}
        data-testid={props.testid}
        data-clean={clean ? "" : undefined}
        onInput={(event) => {
          setDraft(event.currentTarget.value);
          setRefusal("");
        }}
        onKeyDown={onKeyDown}
        onBlur={() => void finish()}
      />
      {error && (
        <p class="ol-field-error" role="alert" data-testid={props.errorTestid}>
          {error}
        </p>
      )}
    </div>
  );
}

/** A heading with what belongs to it; `count` stands beside the heading. */
export function Section({ title, count, children }: { title: string; count?: number; children: ComponentChildren }) {
  return (
    <section class="ol-section">
      <h3>
        {title}
        {count !== undefined && <span class="ol-count">{count}</span>}
      </h3>
      {children}
    </section>
  );
}
