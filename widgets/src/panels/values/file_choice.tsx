/** A file for an input of a run: an array, or an image with what is made of its bytes, and a preview. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import {
  IMAGE_PRESETS,
  type ImageFit,
  type ImageNumbers,
  imageFile,
  imagePlace,
  type SizedImage,
  sizedImage,
} from "../../kernel/npy.ts";
import type { ValueRecord } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import type { Choice } from "../../look/tensor_state.ts";

const FITS: Record<ImageFit, string> = { crop: "crop", pad: "pad", stretch: "stretch" };

/** The last choice, which holds for the next image too. */
const last: { numbers: ImageNumbers; fit: ImageFit } = { numbers: IMAGE_PRESETS["0 to 1"]!, fit: "crop" };

interface Props {
  app: App;
  value: ValueRecord;
  choice: Choice | undefined;
  set: (choice: Choice) => void;
}

export function FileChoice({ app, value, choice, set }: Props) {
  const [problem, setProblem] = useState("");
  const [image, setImage] = useState<File | null>(null);
  const takesImages = imagePlace(value.label) !== null;
  const send = async (file: File, name: string) => {
    try {
      set({ how: "file", file: await app.files.upload(file), fileName: name });
      setProblem("");
    } catch (error) {
      setProblem(asRequestError(error).sentence);
    }
  };
  return (
    <div class="ol-inputs-wide ol-inputs-file">
      <input
        type="file"
        accept={`.npy,.npz,.pb${takesImages ? ",image/*" : ""}`}
        aria-label={`File of ${value.name}`}
        title={takesImages ? "An image, or an array (.npy, .npz, .pb)" : "An array (.npy, .npz, .pb)"}
        data-testid={`run-file-${value.name}`}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (!file) return;
          const isImage = file.type.startsWith("image/");
          setImage(isImage ? file : null);
          if (!isImage) void send(file, file.name);
        }}
      />
      {image && <ImageChoice key={image.name} value={value} file={image} send={send} fail={setProblem} />}
      {choice?.fileName && !image && <span class="ol-dim">{choice.fileName}</span>}
      {problem && (
        <p class="ol-field-error" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

interface ImageProps {
  value: ValueRecord;
  file: File;
  send: (file: File, name: string) => Promise<void>;
  fail: (problem: string) => void;
}

/** The fit of an image into the input, and the numbers that its bytes become. */
function ImageChoice({ value, file, send, fail }: ImageProps) {
  const [numbers, setNumbers] = useState(last.numbers);
  const [fit, setFit] = useState<ImageFit>(last.fit);
  const [sized, setSized] = useState<SizedImage | null>(null);
  const preview = useRef<HTMLCanvasElement>(null);
  const channels = imagePlace(value.label)?.channels ?? 3;
  useEffect(() => {
    let live = true;
    sizedImage(file, value.label, fit).then(
      (image) => live && setSized(image),
      (error) => fail(asRequestError(error).sentence),
    );
    return () => {
      live = false;
    };
  }, [file, fit]);
  useEffect(() => {
    if (!sized) return;
    const element = preview.current,
      context = element?.getContext("2d");
    if (element && context) {
      element.width = sized.width;
      element.height = sized.height;
      context.drawImage(sized.canvas, 0, 0);
    }
    last.numbers = numbers;
    last.fit = fit;
    void send(imageFile(sized, file.name, value.label, numbers), file.name);
  }, [sized, numbers]);
  const preset = Object.entries(IMAGE_PRESETS).find(([, settings]) => same(settings, numbers))?.[0] ?? "";
  const list = (text: string, before: readonly number[]): readonly number[] => {
    const typed = text
      .split(/[,\s]+/)
      .filter(Boolean)
      .map(Number);
    if (!typed.length || typed.some((number) => !Number.isFinite(number))) return before;
    return [0, 1, 2].map((channel) => typed[Math.min(channel, typed.length - 1)]!);
  };
  return (
    <div class="ol-image-choice">
      <canvas ref={preview} class="ol-image-preview" role="img" aria-label={`${file.name} as it is fed`} />
      <div class="ol-image-fields">
        <label>
          preset{" "}
          <select
            class="ol-input ol-select"
            value={preset}
            data-testid={`run-image-preset-${value.name}`}
            onChange={(event) => {
              const chosen = IMAGE_PRESETS[event.currentTarget.value];
              if (chosen) setNumbers(chosen);
            }}
          >
            {preset === "" && <option value="">own numbers</option>}
            {Object.keys(IMAGE_PRESETS).map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          size{" "}
          <select
            class="ol-input ol-select"
            value={fit}
            data-testid={`run-image-fit-${value.name}`}
            onChange={(event) => setFit(event.currentTarget.value as ImageFit)}
          >
            {Object.entries(FITS).map(([fitName, words]) => (
              <option key={fitName} value={fitName}>
                {words}
              </option>
            ))}
          </select>
        </label>
        {channels === 3 && (
          <label>
            order{" "}
            <select
              class="ol-input ol-select"
              value={numbers.reversed ? "BGR" : "RGB"}
              data-testid={`run-image-order-${value.name}`}
              onChange={(event) => setNumbers({ ...numbers, reversed: event.currentTarget.value === "BGR" })}
            >
              <option>RGB</option>
              <option>BGR</option>
            </select>
          </label>
        )}
        <label>
          divided by{" "}
          <input
            type="text"
            class="ol-input ol-mono"
            value={String(numbers.divisor)}
            onChange={(event) => setNumbers({ ...numbers, divisor: Number(event.currentTarget.value) || 1 })}
          />
        </label>
        {(["mean", "std"] as const).map((field) => (
          <label key={field}>
            {field}{" "}
            <input
              type="text"
              class="ol-input ol-mono"
              value={numbers[field].slice(0, channels).join(", ")}
              data-testid={`run-image-${field}-${value.name}`}
              onChange={(event) => setNumbers({ ...numbers, [field]: list(event.currentTarget.value, numbers[field]) })}
            />
          </label>
        ))}
      </div>
    </div>
  );
}

function same(a: ImageNumbers, b: ImageNumbers): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
