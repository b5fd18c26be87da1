// A dense array: which attribute and axes to show, how, and what is known of the cells that are drawn.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { complain, numbersIn, oneOf, setting } from "../address";
import { CURVES, INVERTED, MAPS, category, type Curve, type Scale, type Statistics } from "../colour";
import { go, remember } from "../place";
import { Busy, Choice, Histogram, Trouble, rounded, useWork } from "../parts";
import { labelsOf, type Attribute, type Schema } from "../schema";
import { SLOW, linkSpeed, type Names } from "../server";
import { extensionOf, grouped, shown } from "../values";
import { Grid } from "./grid";
import { LinePlot } from "./line";
import { componentsOf, meantText } from "./numbers";
import { Picture } from "./picture";
import { MOST_CHANNELS, beginFirst, type Channel, type Plane, type Source, type Window } from "./layer";
import { readNotes, withCoordinates } from "./notes";
import { axesOf, placeText, readCells, valueAt, type Axis, type Pick } from "./read";

const BAND_NAMES = /^(bands?|channels?|c|rgba?|samples?|colou?rs?)$/i;
const COLUMN_NAMES = /^(x|lon|long|longitude|easting|cols?|columns?)$/i;
const ROW_NAMES = /^(y|lat|latitude|northing|rows?|lines?)$/i;

/** Returns the dimension that holds bands, by the rule of rasters; null if none does. */
function bandDimension(schema: Schema): number | null {
  const shape = schema.shape ?? [];
  if (shape.length < 3) return null;
  const named = schema.dimensions.findIndex((dimension) => BAND_NAMES.test(dimension.name));
  if (named >= 0) return named;
  const last = shape.length - 1;
  return shape.length === 3 && shape[last] <= 4 && shape[last] < Math.min(shape[0], shape[1]) ? last : null;
}

/** Returns the dimensions of rows and columns that a picture begins with. */
function planeOf(axes: Axis[], bands: number | null): [number, number] {
  const others = axes.map((axis) => axis.dimension).filter((dimension) => dimension !== bands);
  const long = others.filter((dimension) => axes[dimension].length > 1);
  const pair = (long.length >= 2 ? long : others).slice(-2) as [number, number];
  const [row, column] = pair;
  const isTurned = COLUMN_NAMES.test(axes[row].name) && ROW_NAMES.test(axes[column].name);
  return isTurned ? [column, row] : pair;
}

/** What the controls of a view chose. */
export interface DenseState {
  attribute: Attribute;
  /** Positions of all dimensions, and the window of those that are drawn. */
  pick: Pick;
}

interface Props {
  names: Names;
  schema: Schema;
  state: URLSearchParams;
  /** Coarser copies of the array. */
  levels?: Source[];
  /** The colours of its bands, if they have their own. */
  channels?: Channel[] | null;
  onState: (state: DenseState) => void;
}

/** Attributes beyond this number are chosen by name, because a list of all would be too long. */
const MOST_LISTED = 300;

export function DenseView({ names, schema, state, levels = [], channels = null, onState }: Props) {
  const plainAxes = useMemo(() => axesOf(schema), [schema]);
  const bandsHere = bandDimension(schema);
  const [field, setField] = useState(() => {
    const asked = oneOf(state, "field", schema.attributes.map((attribute) => attribute.name));
    return Math.max(0, schema.attributes.findIndex((attribute) => attribute.name === asked));
  });
  const stored = schema.attributes[field];
  const { result: notes } = useWork((signal) => readNotes(names, schema, stored, plainAxes, signal), [names, stored.name]);
  const axes = useMemo(() => (notes ? withCoordinates(plainAxes, notes) : plainAxes), [plainAxes, notes]);
  const attribute = useMemo(() => {
    if (!notes) return stored;
    // Classes are what they are, whatever factor is noted.
    const isMeasured = !notes.palette && !notes.classes && !stored.enumeration && stored.values_per_cell !== "variable" && !stored.unit;
    return { ...stored, missing: notes.missing, ...(isMeasured ? { scale: notes.scale, offset: notes.offset, valueUnit: notes.unit } : {}) };
  }, [stored, notes]);
  const isNumber = attribute.values_per_cell !== "variable" && extensionOf(attribute.files[0] ?? "") !== null;
  const labels = labelsOf(schema, attribute) ?? notes?.classes ?? null;
  const components = componentsOf(attribute);
  const [component, setComponent] = useState(() => Math.max(0, components.indexOf(oneOf(state, "part", components) ?? "")));
  const dimensionOf = (key: string, usual: number) => {
    const asked = oneOf(state, key, axes.map((axis) => axis.name));
    return asked === null ? usual : axes.findIndex((axis) => axis.name === asked);
  };
  const [row0, column0] = axes.length > 1 ? planeOf(axes, bandsHere) : [0, 0];
  const [rows, setRows] = useState(() => dimensionOf("rows", row0));
  const [columns, setColumns] = useState(() => {
    const asked = dimensionOf("columns", column0);
    // Both axes of a picture cannot be the same.
    return asked === rows && axes.length > 1 ? (rows === column0 ? row0 : column0) : asked;
  });
  const [fixed, setFixed] = useState(() => positionsIn(state.get("at"), axes));
  const canBeColours = bandsHere !== null && rows !== bandsHere && columns !== bandsHere && isNumber && !labels &&
    (channels ? channels.length === axes[bandsHere].length && channels.length <= MOST_CHANNELS
      : axes[bandsHere].length >= 3 && axes[bandsHere].length <= 4 && !/INT32|INT64/.test(attribute.datatype));
  const [flip, setFlip] = useState<[boolean, boolean]>(() => {
    const asked = setting(state, "flip", (text) => text.split(",").every((one) => one === "rows" || one === "columns"), "write rows, columns, or rows,columns")?.split(",") ?? [];
    return [asked.includes("rows"), asked.includes("columns")];
  });
  const [asColours, setAsColours] = useState(() => oneOf(state, "colours", ["no"]) !== "no");
  const bands = canBeColours && asColours ? bandsHere : null;
  const lengths = axes.filter((axis) => axis.length > 1).length;
  const shapes = lengths === 0 ? ["value"] : !isNumber ? ["grid"] : lengths === 1 ? ["line", "grid"] : ["picture", "line", "grid"];
  const [shape, setShape] = useState(() => oneOf(state, "as", shapes) ?? shapes[0]);
  const as = shapes.includes(shape) ? shape : shapes[0];
  const [statistics, setStatistics] = useState<Statistics | null>(null);
  const [isSample, setSample] = useState(false);
  const [isBlank, setBlank] = useState(false);
  const onStatistics = useCallback((known: Statistics | null, isSample: boolean) => {
    setStatistics(known);
    setSample(isSample);
    setBlank(known === null);
  }, []);
  const [map, setMap] = useState(() => oneOf(state, "map", [...Object.keys(MAPS), "stored", ...Object.keys(MAPS).map((name) => name + INVERTED)]) ?? "");
  const [curve, setCurve] = useState<Curve>(() => (oneOf(state, "curve", CURVES) as Curve | null) ?? "linear");
  const [limits, setLimits] = useState<string>(() => setting(state, "limits", areLimits, "write percentiles, all, or two numbers such as 0,100") ?? "percentiles");
  const [asked] = useState(() => numbersIn(setting(state, "window", (text) => isWindow(numbersIn(text)), "write four positions such as 0,100,0,200: top, bottom, left, right; of a line two")));
  const [window, setWindow] = useState<Window | null>(
    asked.length === 4 ? { top: asked[0], bottom: asked[1], left: asked[2], right: asked[3] } : null);
  const along = as === "line" && axes.length > 1 ? columns : axes.findIndex((axis) => axis.length > 1) < 0 ? 0 : lengths === 1 ? axes.findIndex((axis) => axis.length > 1) : columns;

  const usesPalette = !!notes?.palette && (map === "" || map === "stored");
  const scaleMap = map.replace(INVERTED, "") in MAPS ? map : "viridis";
  const isTurned = rows === column0 && columns === row0;
  const aspect = !notes || notes.aspect === 1 ? 1 : isTurned ? 1 / notes.aspect : rows === row0 && columns === column0 ? notes.aspect : 1;
  const [off, setOff] = useState(new Set<number>());
  const seen = useMemo(() => channels?.map((channel, at) => ({ ...channel, isOff: off.has(at) })) ?? null, [channels, off]);
  const plane: Plane = useMemo(() => ({ rows, columns, fixed, bands, channels: seen, component }), [rows, columns, fixed, bands, seen, component]);
  const sources: Source[] = useMemo(() => [{ names, schema, attribute, scale: 1 }, ...levels], [names.join("/"), attribute, levels]);
  useEffect(() => {
    // Before the notes are there, so that they are drawn together.
    if (linkSpeed() < SLOW && as === "picture" && levels.length === 0 && asked.length === 0) beginFirst({ names, schema, attribute: stored, scale: 1 }, plane);
  }, []);
  const scale: Scale | null = useMemo(() => statistics && scaleOf(limits, statistics, scaleMap, curve), [limits, statistics, scaleMap, curve]);
  // The address is as it was until somebody changes something.
  const isOpening = useRef(true);
  useEffect(() => {
    if (isOpening.current) {
      isOpening.current = false;
      return;
    }
    remember({
      field: field === 0 ? null : attribute.name,
      rows: rows === row0 ? null : axes[rows]?.name ?? null,
      columns: columns === column0 ? null : axes[columns]?.name ?? null,
      at: atText(fixed, axes),
      as: as === shapes[0] ? null : as,
      map: map || null,
      curve: curve === "linear" ? null : curve,
      limits: limits === "percentiles" ? null : limits,
      part: component ? components[component] : null,
      colours: canBeColours && !asColours ? "no" : null,
      flip: [flip[0] && "rows", flip[1] && "columns"].filter(Boolean).join(",") || null,
    });
  }, [flip, field, rows, columns, fixed, as, map, curve, limits, component, asColours]);
  useEffect(() => {
    const pick: Pick = axes.map((axis) => (axis.length === 1 ? 0 : Math.min(fixed[axis.dimension], axis.length - 1)));
    if (bands !== null) pick[bands] = { start: 0, count: axes[bands].length, step: 1 };
    const part = (dimension: number, from: number, to: number) => {
      pick[dimension] = { start: Math.max(0, Math.floor(from)), count: Math.max(1, Math.min(axes[dimension].length, Math.ceil(to)) - Math.max(0, Math.floor(from))), step: 1 };
    };
    if (as === "picture" || (as === "grid" && lengths > 1)) {
      part(rows, window?.top ?? 0, window?.bottom ?? axes[rows].length);
      part(columns, window?.left ?? 0, window?.right ?? axes[columns].length);
    } else if (as !== "value") part(along, 0, axes[along].length);
    onState({ attribute, pick });
  }, [attribute, rows, columns, fixed, as, bands, window]);

  const drawnDimensions = as === "picture" || (as === "grid" && lengths > 1) ? [rows, columns] : as === "value" ? [] : [along];
  const sliders = axes.filter((axis) => axis.length > 1 && !drawnDimensions.includes(axis.dimension) && axis.dimension !== bands);
  const key = `${names.join("/")} ${attribute.name} ${rows} ${columns} ${component} ${bands}`;
  return (
    <div class="dense">
      <div class="controls">
        {schema.attributes.length > 1 && <FieldChoice schema={schema} field={field} onField={(number) => {
          setField(number);
          setComponent(0);
          setLimits("percentiles");
        }} />}
        {shapes.length > 1 && <Choice label="Show as" value={as} options={shapes} onChange={setShape} />}
        {lengths > 1 && (as === "picture" || as === "grid") && <>
          <Choice label="Rows" value={String(rows)} options={axes.map((axis) => [String(axis.dimension), axis.name])} onChange={(value) => {
            if (Number(value) === columns) setColumns(rows);
            setRows(Number(value));
            setWindow(null);
          }} />
          <Choice label="Columns" value={String(columns)} options={axes.map((axis) => [String(axis.dimension), axis.name])} onChange={(value) => {
            if (Number(value) === rows) setRows(columns);
            setColumns(Number(value));
            setWindow(null);
          }} />
        </>}
        {lengths > 1 && as === "picture" && <>
          <button onClick={() => {
            setRows(columns);
            setColumns(rows);
            setWindow(null);
          }}>swap axes</button>
          {(["rows", "columns"] as const).map((name, at) => <label class="tick" key={name}><input type="checkbox" checked={flip[at]} onChange={() => setFlip(at ? [flip[0], !flip[1]] : [!flip[0], flip[1]])} /> flip {name}</label>)}
        </>}
        {lengths > 1 && as === "line" && <Choice label="Along" value={String(columns)} options={axes.map((axis) => [String(axis.dimension), axis.name])} onChange={(value) => setColumns(Number(value))} />}
        {components.length > 0 && as !== "grid" && <Choice label="Part" value={String(component)} options={components.map((name, number) => [String(number), name])} onChange={(value) => setComponent(Number(value))} />}
        {canBeColours && as === "picture" && <Choice label="Bands" value={asColours ? "yes" : "no"} options={[["yes", "as colours"], ["no", "one at a time"]]} onChange={(value) => setAsColours(value === "yes")} />}
        {as === "picture" && bands === null && (notes?.palette || !labels) && (
          <Choice label="Colours" value={usesPalette ? "stored" : scaleMap.replace(INVERTED, "")} options={[...(notes?.palette ? ["stored"] : []), ...Object.keys(MAPS)]} onChange={setMap} />
        )}
        {as === "picture" && bands === null && !labels && !usesPalette && <label class="tick"><input type="checkbox" checked={scaleMap.endsWith(INVERTED)}
          onChange={(event) => setMap(scaleMap.replace(INVERTED, "") + (event.currentTarget.checked ? INVERTED : ""))} /> inverted</label>}
        {as === "picture" && bands === null && !labels && !usesPalette && <Limits limits={limits} statistics={statistics} onLimits={setLimits} />}
        {(as === "picture" || as === "line") && bands === null && !labels && !(as === "picture" && usesPalette) && (
          <Choice label="Scale" value={curve} options={[...CURVES]} onChange={(value) => setCurve(value as Curve)} />
        )}
      </div>
      {sliders.map((axis) => (
        <Slider key={axis.dimension} axis={axis} position={fixed[axis.dimension]} onPosition={(position) =>
          setFixed((before) => before.map((one, dimension) => (dimension === axis.dimension ? position : one)))} />
      ))}
      {as === "value" && <Single names={names} attribute={attribute} axes={axes} />}
      {as === "picture" && !notes && <p class="status"><Busy /></p>}
      {as === "picture" && notes && (
        <Picture key={key} sources={sources} plane={plane} axes={axes} scale={scale} labels={labels} palette={usesPalette ? notes.palette : null} aspect={aspect} window={window} flip={flip} onStatistics={onStatistics} onWindow={setWindow} />
      )}
      {as === "line" && notes && (
        <LinePlot key={`${key} ${along}`} names={names} schema={schema} attribute={attribute} axis={axes[along]} fixed={fixed.map((one, dimension) => Math.min(one, axes[dimension].length - 1))}
          component={component} labels={labels} curve={curve} window={asked.length === 2 ? [asked[0], asked[1]] : null} onStatistics={onStatistics} />
      )}
      {as === "grid" && (
        <Grid key={key} names={names} attribute={attribute} axes={axes} rows={lengths > 1 ? rows : along} columns={lengths > 1 ? columns : null}
          fixed={fixed.map((one, dimension) => Math.min(one, axes[dimension].length - 1))} labels={labels} start={[Math.floor(window?.top ?? 0), Math.floor(window?.left ?? 0)]} />
      )}
      {isBlank && isNumber && (as === "picture" || as === "line") && <p>
        None of the cells drawn has a value.{" "}
        {schema.covers === "domain" && names.at(-1) !== "nonempty" && <button class="link" onClick={() => go({ names: [...names, "nonempty"], state: new URLSearchParams() })}>Show the box that was written</button>}
      </p>}
      {channels && bands !== null && as === "picture" && (
        <ul class="legend" aria-label="Channels">{channels.map(({ name, colour }, at) => <li key={at}><button aria-pressed={!off.has(at)} onClick={() => {
          const next = new Set(off);
          if (!next.delete(at)) next.add(at);
          setOff(next);
        }}><i style={{ background: `rgb(${colour.join(",")})` }} />{shown(name)}</button></li>)}</ul>
      )}
      {labels && as === "picture" && <Classes labels={labels.map(String)} palette={usesPalette ? notes?.palette ?? null : null} />}
      {notes?.system && as === "picture" && <p class="quiet small">Coordinate system: {shown(notes.system)}</p>}
      {statistics && !labels && (as === "picture" || as === "line") && (
        <Histogram statistics={statistics} scale={as === "picture" && bands === null ? scale : null} isSample={isSample} unit={attribute.valueUnit ?? ""} />
      )}
    </div>
  );
}

function FieldChoice({ schema, field, onField }: { schema: Schema; field: number; onField: (field: number) => void }) {
  const name = schema.attributes[field].name;
  if (schema.attributes.length <= MOST_LISTED) {
    return <Choice label="Attribute" value={String(field)} options={schema.attributes.map((one, number) => [String(number), one.name || "(no name)"])} onChange={(value) => onField(Number(value))} />;
  }
  const find = (text: string) => {
    const number = schema.attributes.findIndex((attribute) => attribute.name === text);
    if (number >= 0) onField(number);
  };
  const near = schema.attributes.slice(Math.max(0, field - 20), field + 20);
  return (
    <label class="choice">
      <span>Attribute, of {grouped(schema.attributes.length)}</span>
      <input list="attributes" value={name} onChange={(event) => find(event.currentTarget.value)} />
      <datalist id="attributes">{near.map((one) => <option key={one.name} value={one.name} />)}</datalist>
    </label>
  );
}

function Limits({ limits, statistics, onLimits }: { limits: string; statistics: Statistics | null; onLimits: (limits: string) => void }) {
  const own = numbersIn(limits);
  const isOwn = own.length === 2;
  const current = isOwn ? own : statistics ? [statistics.low, statistics.high] : [0, 1];
  const set = (at: number, text: string) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value)) return;
    onLimits(current.map((one, number) => (number === at ? value : one)).join(","));
  };
  return (
    <>
      <Choice label="Limits" value={isOwn ? "own" : limits} options={[["percentiles", "2nd to 98th percentile"], ["all", "least to greatest"], ["own", "by hand"]]}
        onChange={(value) => onLimits(value === "own" ? current.map(rounded).join(",") : value)} />
      {isOwn && [0, 1].map((at) => (
        <label class="choice number" key={at}><span>{at ? "to" : "from"}</span><input inputMode="decimal" value={String(own[at])} onChange={(event) => set(at, event.currentTarget.value)} /></label>
      ))}
    </>
  );
}

function scaleOf(limits: string, statistics: Statistics, map: string, curve: Curve): Scale {
  const own = numbersIn(limits);
  const [low, high] = own.length === 2 ? own : limits === "all" ? [statistics.least, statistics.greatest] : [statistics.low, statistics.high];
  // A logarithm needs numbers above zero.
  const isLog = curve === "log" && statistics.positive < Infinity;
  return { low: isLog && low <= 0 ? statistics.positive : low, high, map, curve: curve === "log" && !isLog ? "linear" : curve };
}

/** The most classes that a legend lists. */
const MOST_CLASSES = 60;

/** The names of classes with their colours. */
function Classes({ labels, palette }: { labels: string[]; palette: Uint32Array | null }) {
  const colour = (number: number) => {
    const pixel = palette?.[number];
    return pixel === undefined ? category(number) : `rgb(${pixel & 255}, ${(pixel >> 8) & 255}, ${(pixel >> 16) & 255})`;
  };
  return (
    <ul class="legend" aria-label="Classes">
      {labels.slice(0, MOST_CLASSES).map((label, number) => label && <li key={number}><i style={{ background: colour(number) }} />{shown(label)}</li>)}
      {labels.length > MOST_CLASSES && <li class="quiet">and {grouped(labels.length - MOST_CLASSES)} more</li>}
    </ul>
  );
}

/** A slider over the positions of a dimension, with its coordinate. */
function Slider({ axis, position, onPosition }: { axis: Axis; position: number; onPosition: (position: number) => void }) {
  const here = Math.min(position, axis.length - 1);
  const label = `${axis.name} = ${placeText(axis, here)}`;
  return (
    <label class="slider">
      <span>{shown(axis.name)} = <output>{shown(placeText(axis, here))}</output></span>
      <button aria-label={`${axis.name}: back`} disabled={here === 0} onClick={() => onPosition(here - 1)}>‹</button>
      <input type="range" min={0} max={axis.length - 1} value={here} aria-label={axis.name} aria-valuetext={label} onInput={(event) => onPosition(Number(event.currentTarget.value))} />
      <button aria-label={`${axis.name}: on`} disabled={here === axis.length - 1} onClick={() => onPosition(here + 1)}>›</button>
      <span class="quiet">{grouped(here + 1)} of {grouped(axis.length)}</span>
    </label>
  );
}

/** The only cell of an array. */
function Single({ names, attribute, axes }: { names: Names; attribute: Attribute; axes: Axis[] }) {
  const { result: cells, error } = useWork((signal) => readCells(names, attribute, axes.map(() => 0), signal), [names, attribute.name]);
  if (error !== undefined) return <Trouble error={error} />;
  const parts = cells ? Array.from({ length: Math.min(cells.perCell, 64) }, (_, part) => meantText(valueAt(cells, 0, part), attribute)) : [];
  return (
    <p class="single">
      <output class="value">{shown(parts.join(", "))}</output>
      <span class="quiet">{shown(`${attribute.name} at ${axes.map((axis) => `${axis.name} = ${axis.text(0)}`).join(", ")}`)}</span>
    </p>
  );
}

function areLimits(text: string): boolean {
  return text === "percentiles" || text === "all" || numbersIn(text).length === 2;
}

/** Returns whether numbers are the ends of a line, or the sides of a picture. */
function isWindow(numbers: number[]): boolean {
  return (numbers.length === 2 || numbers.length === 4) && numbers.every((end, at) => end >= 0 && (at % 2 === 0 || end > numbers[at - 1]));
}

/** Reads positions as they are in the address: `time:5,level:2`. */
function positionsIn(text: string | null, axes: Axis[]): number[] {
  const fixed = axes.map(() => 0);
  for (const pair of text ? text.split(",") : []) {
    const at = pair.lastIndexOf(":");
    const [axis, position] = [axes.find((one) => one.name === pair.slice(0, at)), Number(pair.slice(at + 1))];
    if (axis && at >= 0 && pair.length > at + 1 && Number.isInteger(position) && position >= 0 && position < axis.length) fixed[axis.dimension] = position;
    else complain("at", pair, axis ? `write a position from 0 to ${axis.length - 1}` : `write NAME:POSITION, with a name of ${axes.map((one) => one.name).join(", ")}`);
  }
  return fixed;
}

function atText(fixed: number[], axes: Axis[]): string | null {
  return fixed.map((position, dimension) => position && `${axes[dimension].name}:${position}`).filter(Boolean).join(",") || null;
}
