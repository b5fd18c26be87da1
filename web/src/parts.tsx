// Small parts that several views use.
import { useEffect, useState } from "preact/hooks";
import { Refused } from "./server";
import { colourAt, type Scale, type Statistics } from "./colour";
import { floatText, shown, shownLines } from "./values";

export function Busy() {
  return <span class="busy" role="status">reading …</span>;
}

/** Says what went wrong, in the words of the server. */
export function Trouble({ error }: { error: unknown }) {
  const reason = error instanceof Error ? error.message : String(error);
  const isAccess = error instanceof Refused && error.status === 401;
  return <p class="trouble" role="alert">{isAccess ? "This server needs its token: add ?token=… to the address." : shownLines(reason)}</p>;
}

/** Keeps the result of the latest work, and ends work that nobody waits for. */
export function useWork<T>(work: (signal: AbortSignal) => Promise<T>, needs: unknown[]): { result?: T; error?: unknown } {
  const [state, setState] = useState<{ result?: T; error?: unknown; needs?: string }>({});
  const key = JSON.stringify(needs);
  useEffect(() => {
    const abort = new AbortController();
    work(abort.signal).then(
      (result) => abort.signal.aborted || setState({ result, needs: key }),
      (error) => abort.signal.aborted || setState({ error, needs: key }),
    );
    return () => abort.abort();
  }, [key]);
  return state.needs === key ? state : {};
}

const darkness = matchMedia("(prefers-color-scheme: dark)");

/** Returns whether the colour scheme is dark. What is drawn on a canvas has to be drawn again when that changes. */
export function useDark(): boolean {
  const [isDark, setDark] = useState(darkness.matches);
  useEffect(() => {
    const change = () => setDark(darkness.matches);
    darkness.addEventListener("change", change);
    return () => darkness.removeEventListener("change", change);
  }, []);
  return isDark;
}

/** A list to choose from. */
export function Choice(props: { label: string; value: string; options: (string | [string, string])[]; onChange: (value: string) => void }) {
  return (
    <label class="choice">
      <span>{shown(props.label)}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.options.map((option) => {
          const [value, text] = typeof option === "string" ? [option, option] : option;
          return <option key={value} value={value} selected={value === props.value}>{shown(text)}</option>;
        })}
      </select>
    </label>
  );
}

/** How often values occur among those that were loaded. */
export function Histogram({ statistics, scale, isSample, unit }: { statistics: Statistics; scale: Scale | null; isSample: boolean; unit: string }) {
  const { bins, least, greatest, mean, count, missing } = statistics;
  const most = Math.max(...bins);
  const width = greatest - least || 1;
  const place = (value: number) => Math.min(100, Math.max(0, ((value - least) / width) * 100));
  const of = isSample ? "of the cells drawn, a sample" : "of the cells drawn";
  return (
    <figure class="histogram">
      <svg viewBox="0 0 100 32" preserveAspectRatio="none" role="img" aria-label={`Histogram ${of}`}>
        {scale && <rect class="limits" x={place(scale.low)} width={Math.max(0.5, place(scale.high) - place(scale.low))} y="0" height="32" />}
        {bins.map((bin, at) => {
          const height = bin === 0 ? 0 : Math.max(0.7, (bin / most) * 31);
          const fill = scale ? colourAt(least + ((at + 0.5) / bins.length) * width, scale) : undefined;
          return <rect key={at} class="bin" fill={fill} x={(at * 100) / bins.length} width={100 / bins.length - 0.25} y={32 - height} height={height} />;
        })}
      </svg>
      <figcaption>
        <span>{rounded(least)}{unit && ` ${shown(unit)}`}</span>
        <span class="quiet">mean {rounded(mean)}{missing ? `, ${((100 * missing) / (count + missing)).toPrecision(2)} % missing` : ""}</span>
        <span>{rounded(greatest)}{unit && ` ${shown(unit)}`}</span>
      </figcaption>
      <p class="quiet small">Histogram {of}</p>
    </figure>
  );
}

/** Returns a number in few digits. */
export function rounded(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const short = Number(value.toPrecision(5));
  return Math.abs(short) >= 1e-4 && Math.abs(short) < 1e7 ? String(short) : Number.isFinite(short) ? short.toExponential() : floatText(value);
}

/** Puts a text into the clipboard. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure context there is no clipboard for pages, but a selection can be copied.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
