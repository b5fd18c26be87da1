// An experiment of TileDB-SOMA: its cells as embeddings, coloured by a column of the observations or by a gene.
import { useMemo, useState } from "preact/hooks";
import { readCells } from "../dense/read";
import { drawn } from "../dense/numbers";
import { Busy, Choice, Trouble, useWork } from "../parts";
import { oneOf } from "../address";
import { remember } from "../place";
import { Scatter, type Colouring, type Points } from "../scatter";
import { json, urlOf, type Names } from "../server";
import { CopyAs, Downloads, literal, shellWord } from "../share";
import type { Group, Schema } from "../schema";
import { Rows } from "../table/rows";
import { TableView } from "../table/view";
import { grouped, valueText } from "../values";

/** The most cells of an experiment that are drawn. */
const MOST_CELLS = 1_000_000;
/** The most variables whose names are read to find one. */
const MOST_VARIABLES = 200_000;

interface Embedding {
  measurement: string;
  name: string;
}

interface Experiment {
  embeddings: Embedding[];
  layers: Record<string, string[]>;
  obs: Schema;
}

async function members(names: Names, signal: AbortSignal): Promise<string[]> {
  try {
    return (await json<Group>(names, ".group/group.json", signal)).members.filter((member) => member.state !== "missing").map((member) => member.name);
  } catch {
    return [];
  }
}

async function open(names: Names, signal: AbortSignal): Promise<Experiment> {
  const obs = await json<Schema>([...names, "obs"], "schema.json", signal);
  const measurements = await members([...names, "ms"], signal);
  const embeddings: Embedding[] = [];
  const layers: Record<string, string[]> = {};
  for (const measurement of measurements) {
    const own = await members([...names, "ms", measurement], signal);
    if (own.includes("X")) layers[measurement] = await members([...names, "ms", measurement, "X"], signal);
    if (!own.includes("obsm")) continue;
    for (const name of await members([...names, "ms", measurement, "obsm"], signal)) embeddings.push({ measurement, name });
  }
  // Two columns are made to be looked at; the first two of many are not.
  const rank = ({ name }: Embedding) => ["umap", "tsne", "pca"].findIndex((known) => name.toLowerCase().includes(known)) + 10 * Number(!/umap|tsne|pca/i.test(name));
  embeddings.sort((a, b) => rank(a) - rank(b));
  return { embeddings, layers, obs };
}

/** Reads numbers of a matrix of SOMA along one position of its second dimension, by the position of the first. */
async function column(names: Names, position: number, count: number, signal: AbortSignal): Promise<Float64Array> {
  const schema = await json<Schema>(names, "schema.json", signal);
  const out = new Float64Array(count);
  if (schema.array_type === "dense") {
    const attribute = schema.attributes[0];
    const length = Math.min(count, schema.shape?.[0] ?? 0);
    const cells = await readCells(names, attribute, [{ start: 0, count: length, step: 1 }, position], signal);
    out.fill(NaN).set(drawn(cells, attribute, 0));
    return out;
  }
  const selected = [...names, "slice", `soma_dim_1=${position}`];
  const rows = await Rows.open(selected, await json<Schema>(selected, "schema.json", signal));
  const at = (name: string) => rows.columns.findIndex((one) => one.name === name);
  for (const file of await rows.some(Infinity)) {
    const [places, values] = await Promise.all([file.numbers(0, file.rows, at("soma_dim_0")), file.numbers(0, file.rows, at("soma_data"))]);
    places?.forEach((place, row) => {
      if (place < count) out[place] = values?.[row] ?? NaN;
    });
  }
  return out;
}

export function ExperimentView({ names, state }: { names: Names; state: URLSearchParams }) {
  const { result: experiment, error } = useWork((signal) => open(names, signal), [names]);
  if (error !== undefined) return <Trouble error={error} />;
  if (!experiment) return <p class="status"><Busy /></p>;
  return (
    <>
      {experiment.embeddings.length > 0 && <Embeddings names={names} experiment={experiment} state={state} />}
      <MeasurementFiles names={names} measurements={[...new Set([...Object.keys(experiment.layers), ...experiment.embeddings.map((one) => one.measurement)])]} />
      <h2>Observations</h2>
      <TableView names={[...names, "obs"]} schema={experiment.obs} state={state} />
    </>
  );
}

/** Shows the files that hold a measurement with its observations. */
function MeasurementFiles({ names, measurements }: { names: Names; measurements: string[] }) {
  const files = measurements.map((name) => [name, `h5ad/${name}.h5ad`] as [string, string]);
  const path = files[0]?.[1] ?? "";
  const url = urlOf(names, path);
  return files.length === 0 ? null : (
    <section class="share" aria-label="Use it elsewhere">
      <CopyAs commands={[
        ["Python", `import anndata\na = anndata.read_h5ad(${literal(["MNT", ...names, path].join("/"))})`],
        ["curl", `curl -O ${shellWord(url)}`],
        ["Path in a mount", shellWord(["MNT", ...names, path].join("/"))],
      ]} />
      <Downloads folder={names} files={files.map(([name, path]) => [`h5ad of ${name}`, path])} isLong={false} />
    </section>
  );
}

function Embeddings({ names, experiment, state }: { names: Names; experiment: Experiment; state: URLSearchParams }) {
  const { embeddings, layers, obs } = experiment;
  const titles = embeddings.map((one) => `${one.measurement} / ${one.name}`);
  const [chosen, setChosen] = useState(() => Math.max(0, titles.indexOf(oneOf(state, "embedding", titles) ?? "")));
  const fields = obs.attributes.filter((attribute) => attribute.enumeration || /INT|FLOAT/.test(attribute.datatype));
  const usual = fields.find((attribute) => attribute.enumeration) ?? fields[0];
  const [field, setField] = useState(() => oneOf(state, "colour", fields.map((one) => one.name)) ?? usual?.name ?? "");
  const [gene, setGene] = useState(state.get("gene") ?? "");
  const { measurement, name } = embeddings[chosen];

  // Rows of observations by their position in matrices.
  const table = useWork(async () => {
    const rows = await Rows.open([...names, "obs"], obs);
    const file = rows.first;
    const ids = await file.numbers(0, Math.min(file.rows, MOST_CELLS), rows.columns.findIndex((one) => one.name === "soma_joinid"));
    return { rows, file, ids: ids ?? new Float64Array(0) };
  }, [names]);
  const count = table.result ? table.result.ids.reduce((most, id) => Math.max(most, id), -1) + 1 : 0;
  const places = useWork(async (signal) => {
    if (!table.result) return null;
    const matrix = [...names, "ms", measurement, "obsm", name];
    return Promise.all([column(matrix, 0, count, signal), column(matrix, 1, count, signal)]);
  }, [names, chosen, count]);
  const colours = useWork(async (signal): Promise<Colouring | null> => {
    if (!table.result) return null;
    const { rows, file, ids } = table.result;
    if (gene) {
      const place = await findVariable([...names, "ms", measurement, "var"], gene, signal);
      const layer = layers[measurement]?.includes("data") ? "data" : layers[measurement]?.[0];
      if (place === null || !layer) throw new Error(`no variable is called ${gene}`);
      const all = await column([...names, "ms", measurement, "X", layer], place, count, signal);
      return { name: gene, values: Float64Array.from(ids, (id) => all[id]), labels: null, text: (value) => valueText(value, "FLOAT32") };
    }
    const at = rows.columns.findIndex((one) => one.name === field);
    const values = at < 0 ? null : await file.numbers(0, ids.length, at);
    const attribute = obs.attributes.find((one) => one.name === field);
    return values && { name: field, values, labels: file.labels(at)?.map(String) ?? null, text: (value) => (Number.isNaN(value) ? "null" : valueText(value, attribute?.datatype ?? "")) };
  }, [names, chosen, field, gene, count]);
  const points: Points | null = useMemo(() => {
    if (!places.result || !table.result) return null;
    const [x, y] = places.result;
    const { ids } = table.result;
    const text = (value: number) => value.toPrecision(4);
    return {
      x: Float64Array.from(ids, (id) => x[id]), y: Float64Array.from(ids, (id) => y[id]), xName: `${name} 1`, yName: `${name} 2`, xText: text, yText: text,
      isSample: ids.length < (table.result.rows.count ?? 0),
      note: ids.length < (table.result.rows.count ?? 0) ? `${grouped(ids.length)} of ${grouped(table.result.rows.count)} cells` : `${grouped(ids.length)} cells, each one drawn`,
    };
  }, [places.result, table.result, name]);
  const problem = table.error ?? places.error ?? colours.error;
  return (
    <section>
      <div class="controls">
        {titles.length > 1 && <Choice label="Embedding" value={String(chosen)} options={titles.map((title, at) => [String(at), title])} onChange={(value) => {
          setChosen(Number(value));
          remember({ embedding: titles[Number(value)] });
        }} />}
        <Choice label="Colour" value={field} options={fields.map((one) => one.name)} onChange={(value) => {
          setField(value);
          setGene("");
          remember({ colour: value, gene: null, hide: null });
        }} />
        <label class="choice"><span>or by a gene</span><input value={gene} placeholder="name" onChange={(event) => {
          setGene(event.currentTarget.value.trim());
          remember({ gene: event.currentTarget.value.trim() || null, hide: null });
        }} /></label>
      </div>
      {problem !== undefined && <Trouble error={problem} />}
      {points ? <Scatter points={points} colouring={colours.result ?? null} hide={state.get("hide")} square /> : problem === undefined && <p class="status"><Busy /></p>}
    </section>
  );
}

/** Returns the position of a variable in matrices, by a text in any of its columns. */
async function findVariable(names: Names, wanted: string, signal: AbortSignal): Promise<number | null> {
  const schema = await json<Schema>(names, "schema.json", signal);
  const rows = await Rows.open(names, schema);
  const id = rows.columns.findIndex((column) => column.name === "soma_joinid");
  const texts = rows.columns.flatMap((column, at) => (column.kind === "text" && column.type !== "label" ? [at] : []));
  for (let from = 0; from < Math.min(rows.count, MOST_VARIABLES); from += 5000) {
    const read = await rows.read(from, Math.min(rows.count, from + 5000), [id, ...texts]);
    const row = read.find((row) => row?.slice(1).some((text) => String(text).toLowerCase() === wanted.toLowerCase()));
    if (row) return Number(row[0]);
  }
  return null;
}
