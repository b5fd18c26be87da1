// A sparse array: its cells as points if its dimensions are numbers, its rows as a table, and ranges that select some.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { oneOf } from "./address";
import { Choice, Busy, Trouble, useWork } from "./parts";
import { go, here, remember, selectionIn } from "./place";
import { Scatter, type Colouring, type Points } from "./scatter";
import type { Dimension, Schema } from "./schema";
import { whyAbsent, type Names } from "./server";
import type { ArrowFile } from "./table/arrow";
import { Rows } from "./table/rows";
import { boxesOf, selectionOf } from "./table/conditions";
import { TableView, exampleOf } from "./table/view";
import { dateText, grouped, milliseconds, shown as safe, valueText } from "./values";

/** The points that are read first and at most, and the parts of a long table from which: each costs a search for its rows. */
const STAGES = [{ points: 65_536, parts: 4 }, { points: 1_000_000, parts: 16 }];

/** Points of some parts of a table, spread evenly. */
interface Sample {
  rows: Rows;
  files: ArrowFile[];
  isWhole: boolean;
  /** Reads the numbers of a column; null if it has others. */
  read: (name: string) => Promise<Float64Array | null>;
}

async function sampleOf(opened: Promise<Rows>, stage: number): Promise<Sample> {
  const most = STAGES[stage];
  const rows = await opened;
  const files = await rows.some(most.parts);
  const isWhole = rows.count <= most.points;
  const share = isWhole ? Infinity : Math.ceil(most.points / files.length);
  const known = new Map<string, Promise<Float64Array | null>>();
  const readParts = async (at: number) => {
    const parts = await Promise.all(files.map((file) => file.numbers(0, Math.min(file.rows, share), at)));
    return parts.every((part) => part !== null) ? joined(parts as Float64Array[]) : null;
  };
  const read = (name: string) => {
    const at = rows.columns.findIndex((column) => column.name === name);
    const reading = known.get(name) ?? (at < 0 ? Promise.resolve(null) : readParts(at));
    known.set(name, reading);
    return reading;
  };
  return { rows, files, isWhole, read };
}

export function SparseView({ names, schema, state }: { names: Names; schema: Schema; state: URLSearchParams }) {
  const numeric = schema.dimensions.filter(isNumber);
  const canDraw = planeOf(schema).every((at) => isNumber(schema.dimensions[at])) && (schema.dimensions.length <= 2 ? numeric.length === schema.dimensions.length : planeOf(schema).length === 2)
    && schema.attributes.length > 0 && schema.rows !== 0;
  const usual = canDraw && schema.dimensions.length >= 2 ? "points" : "table";
  const [as, setAs] = useState(() => oneOf(state, "as", canDraw ? ["table", "points"] : ["table"]) ?? usual);
  return (
    <div>
      <div class="controls">
        {canDraw && <Choice label="Show as" value={as} options={["table", "points"]} onChange={(value) => {
          setAs(value);
          remember({ as: value === usual ? null : value });
        }} />}
        {as === "points" && <Ranges names={names} schema={schema} />}
      </div>
      {as === "points" ? <Cells names={names} schema={schema} state={state} /> : <TableView names={names} schema={schema} state={state} />}
    </div>
  );
}

const EASTINGS = /^_?(x|lon|longitude|easting)$/i, NORTHINGS = /^_?(y|lat|latitude|northing)$/i;

/** Returns the dimensions that go to the right and upwards: by their names, or the second and the first; of one, only this. */
function planeOf({ dimensions }: Schema): number[] {
  if (dimensions.length === 1) return [0];
  const named = [EASTINGS, NORTHINGS].map((names) => dimensions.findIndex(({ name }) => names.test(name)));
  return named.every((at) => at >= 0) ? named : dimensions.length === 2 ? [1, 0] : [];
}

/** Returns whether a unit is as long along both dimensions: on the Earth, or in a plane. */
function hasEqualUnits(schema: Schema): boolean {
  const [x, y] = planeOf(schema).map((at) => schema.dimensions[at]);
  return !!y && EASTINGS.test(x.name) && NORTHINGS.test(y.name) && x.datatype === y.datatype;
}

function isNumber(dimension: Dimension): boolean {
  return /INT|FLOAT|DATETIME|TIME/.test(dimension.datatype);
}

/** Ranges of the dimensions; together with other conditions they are a selection of the tree. */
function Ranges({ names, schema }: { names: Names; schema: Schema }) {
  const { array, selection } = selectionIn(names);
  const [boxes, setBoxes] = useState(() => boxesOf(selection, schema));
  const [wrong, setWrong] = useState<string | null>(null);
  const apply = async (event: Event) => {
    event.preventDefault();
    const next = selectionOf(boxes);
    // What is wrong stays in its box.
    const reason = next === null ? null : await whyAbsent([...array, "slice", next], "schema.json").catch((error: Error) => error.message);
    setWrong(reason);
    if (reason === null) go({ names: next === null ? array : [...array, "slice", next], state: here().state });
  };
  return (
    <form class="ranges" onSubmit={(event) => void apply(event)}>
      {schema.dimensions.slice(0, 12).map(({ name }) => (
        <label class="choice range" key={name}>
          <span>{safe(name)}</span>
          <input value={boxes.get(name) ?? ""} size={Math.max(8, exampleOf(schema, name).length)} placeholder={exampleOf(schema, name)} aria-label={`Range of ${safe(name)}`} aria-invalid={wrong !== null}
            onInput={(event) => {
              const text = event.currentTarget.value;
              setBoxes((before) => new Map(before).set(name, text));
            }} />
        </label>
      ))}
      <button type="submit">Select</button>
      {selection && <button type="button" onClick={() => go({ names: array, state: here().state })}>All</button>}
      {wrong !== null && <Trouble error={wrong} />}
    </form>
  );
}

function Cells({ names, schema, state }: { names: Names; schema: Schema; state: URLSearchParams }) {
  const [field, setField] = useState(() => oneOf(state, "field", [...schema.attributes, ...schema.dimensions].map((one) => one.name)) ?? schema.attributes[0].name);
  const [stage, setStage] = useState(0);
  const rows = useRef<Promise<Rows> | null>(null);
  const samples = useRef<Promise<Sample>[]>([]);
  const { result, error } = useWork(async () => {
    // Read once for all fields.
    rows.current ??= Rows.open(names, schema, STAGES[0].parts);
    const sample = await (samples.current[stage] ??= sampleOf(rows.current, stage));
    const dimensions = planeOf(schema).map((at) => schema.dimensions[at].name);
    const [values, ...coordinates] = await Promise.all([field, ...dimensions].map((name) => sample.read(name)));
    return { sample, coordinates, field, values };
  }, [names, stage, field]);
  // What is shown stays until there is more.
  const last = useRef<typeof result>(undefined);
  const shown = (last.current = result ?? last.current);
  useEffect(() => {
    if (result && !result.sample.isWhole && stage + 1 < STAGES.length) setStage(stage + 1);
  }, [result]);
  const attribute = schema.attributes.find((one) => one.name === shown?.field);
  const points = useMemo(() => {
    const [first, second] = shown?.coordinates ?? [];
    const y = second ?? shown?.values;
    return shown && first && y ? pointsOf(schema, shown.sample.rows.count, first, y, second ? null : attribute?.name ?? "") : null;
  }, [shown]);
  if (error !== undefined) return <Trouble error={error} />;
  const column = shown?.sample.rows.columns.findIndex((one) => one.name === shown.field) ?? -1;
  const colouring: Colouring | null = shown?.values && schema.dimensions.length >= 2 ? {
    name: shown.field, values: shown.values, labels: shown.sample.files[0].labels(column)?.map(String) ?? null,
    text: (value) => (Number.isNaN(value) ? "NaN" : valueText(value, attribute?.datatype ?? "", attribute?.unit)),
  } : null;
  return (
    <div>
      <div class="controls">
        <Choice label={schema.dimensions.length >= 2 ? "Colour" : "Height"} value={field} options={[...schema.attributes.slice(0, 300), ...schema.dimensions.filter((_, at) => schema.dimensions.length > 2 && !planeOf(schema).includes(at))].map((one) => one.name)} onChange={(value) => {
          setField(value);
          remember({ field: value, hide: null });
        }} />
      </div>
      {!points ? (shown ? <p class="quiet">{safe(shown.field)} has no numbers to draw.</p> : <p class="status"><Busy /></p>) : <Scatter points={points} colouring={colouring} hide={state.get("hide")} hasEqualUnits={hasEqualUnits(schema)} />}
    </div>
  );
}

function joined(parts: Float64Array[]): Float64Array {
  const out = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The unit in which an Arrow file has dates of a unit of TileDB. */
function arrowUnit(unit: string): string {
  return /^(Y|M|W|D|h|m)$/.test(unit) ? "s" : unit;
}

/** Two dimensions are the plane, to the right and upwards; of one dimension and a value, the dimension is the width. */
function pointsOf(schema: Schema, count: number, first: Float64Array, second: Float64Array, valueName: string | null): Points {
  const axis = (at: number, values: Float64Array) => {
    const { name, unit, datatype } = schema.dimensions[at];
    const isDate = !!unit && datatype.startsWith("DATETIME");
    return {
      name, isDate,
      values: isDate && unit ? values.map((value) => milliseconds(value, arrowUnit(unit))) : values,
      text: (value: number) => (isDate ? dateText(BigInt(Math.round(value)), "ms") : valueText(value, datatype)),
    };
  };
  const value = { name: valueName ?? "", isDate: false, values: second, text: (value: number) => String(value) };
  const [x, y] = valueName === null ? [axis(planeOf(schema)[0], first), axis(planeOf(schema)[1], second)] : [axis(0, first), value];
  const sampled = first.length < count ? `Sampled: ${grouped(first.length)} of ${grouped(count)} cells` : `${grouped(first.length)} cells, each one drawn`;
  return { x: x.values, y: y.values, xName: x.name, yName: y.name, xText: x.text, yText: y.text, xIsDate: x.isDate, yIsDate: y.isDate, note: sampled, isSample: first.length < count };
}
