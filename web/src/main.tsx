// The page: what the folder in the address is, and the view that shows it.
import { render } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { FilesView, MetadataView, SchemaView } from "./about";
import { DenseView, type DenseState } from "./dense/view";
import { gridsOf, GridsView, mayHaveGrids } from "./group/grids";
import { Branch, Link, Members } from "./group/members";
import { levelsOf, PyramidView } from "./group/pyramid";
import { ExperimentView } from "./group/soma";
import { VariantsView } from "./group/variants";
import { Busy, Trouble, useWork } from "./parts";
import { here, remember, selectionIn, timeIn, type Place } from "./place";
import { open, type Node, type Schema } from "./schema";
import { bytes, calm, root, type Names } from "./server";
import { Share } from "./share";
import { SparseView } from "./sparse";
import "./style.css";
import { arrayLine, writesLine } from "./summary";
import { TableView } from "./table/view";
import { momentText, TimeSlider } from "./time";
import { grouped, shown } from "./values";
import { Notes, oneOf } from "./address";

/** The name of what is served, which the root of the tree has not. */
const title = document.documentElement.dataset.title || "tilefs";

function Page() {
  const [place, setPlace] = useState<Place & { visit: number }>({ ...here(), visit: 0 });
  useEffect(() => {
    // Views take their state from the address when they begin, so each step back begins them again.
    const move = () => setPlace((before) => ({ ...here(), visit: before.visit + 1 }));
    addEventListener("popstate", move);
    return () => removeEventListener("popstate", move);
  }, []);
  const { names } = place;
  const { result: node, error } = useWork((signal) => open(names, signal), [names]);
  const top = timeIn(names).base.length === 0 && timeIn(names).time !== null ? names.slice(0, 2) : [];
  // What is served stays what it is, so it is asked for once.
  const known = useRef<Node | null>(null);
  const { result: other } = useWork(async (signal) => (names.length === top.length ? null : (known.current ?? (await calm(), open(top, signal)))), [top, names.length]);
  const topNode = (names.length === top.length ? node : other) ?? known.current;
  known.current = topNode;
  const own = selectionIn(timeIn(names).rest.length ? timeIn(names).rest : timeIn(names).base).array.at(-1) ?? title;
  useEffect(() => {
    document.title = own === title ? shown(title) : `${shown(own)} – ${shown(title)}`;
  }, [own]);
  const hasTree = !!topNode && topNode.kind !== "array";
  return (
    <>
      <header>
        <a class="skip" href="#main">To the content</a>
        <Trail names={names} />
      </header>
      <div class={hasTree ? "columns" : ""}>
        {hasTree && <nav aria-label="Tree"><details class="tree" open={matchMedia("(min-width: 900px)").matches}><summary>{shown(title)}</summary><Branch names={top} current={names} /></details></nav>}
        <main id="main">
          <h1>{shown(own)}</h1>
          <Notes state={place.state} />
          {error !== undefined ? <Trouble error={error} /> : !node ? <p class="status"><Busy /></p> : <NodeView key={`${place.visit} ${names.join("/")}`} node={node} state={place.state} />}
        </main>
      </div>
    </>
  );
}

function Trail({ names }: { names: Names }) {
  const words = names.map((name, at) => (at > 0 && names[at - 1] === ".history" ? momentText(name) : shown(name)));
  return (
    <nav aria-label="Path" class="trail">
      <ol>
        <li><Link names={[]} current={names.length === 0}>{shown(title)}</Link></li>
        {names.map((name, at) => <li key={at}>{name === ".history" || name === "slice" || name === "islice" ? <span>{name}</span> : <Link names={names.slice(0, at + 1)} current={at === names.length - 1}>{words[at]}</Link>}</li>)}
      </ol>
    </nav>
  );
}

function NodeView({ node, state }: { node: Node; state: URLSearchParams }) {
  if (node.kind === "array") return <ArrayView names={node.names} schema={node.schema} state={state} />;
  if (node.kind === "group") return <GroupView node={node} state={state} />;
  return (
    <>
      <Members names={node.names} members={node.members.filter((member) => member.type === "directory").map((member) => ({ name: member.name, type: "folder" }))} />
      <h2>Files</h2>
      <FilesView names={node.names} entries={node.members.filter((member) => member.type === "file")} />
    </>
  );
}

/** A choice between views of the same node. */
function Tabs({ tabs, state }: { tabs: [string, () => preact.JSX.Element][]; state: URLSearchParams }) {
  const [chosen, setChosen] = useState(() => Math.max(0, tabs.findIndex(([name]) => name === oneOf(state, "tab", tabs.map(([name]) => name)))));
  const select = (at: number) => {
    setChosen(at);
    remember({ tab: at === 0 ? null : tabs[at][0] });
  };
  const keys = (event: KeyboardEvent) => {
    const way = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!way) return;
    const next = (chosen + way + tabs.length) % tabs.length;
    select(next);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" onKeyDown={keys}>
        {tabs.map(([name], at) => <button key={name} role="tab" id={`tab-${at}`} aria-selected={at === chosen} aria-controls="panel" tabIndex={at === chosen ? 0 : -1} onClick={() => select(at)}>{name}</button>)}
      </div>
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${chosen}`}>{tabs[Math.min(chosen, tabs.length - 1)][1]()}</div>
    </>
  );
}

/** Returns the stored bytes of all writes, if there are not too many to add up. */
async function storedBytes(names: Names, schema: Schema, signal: AbortSignal): Promise<number | null> {
  if (schema.fragments > 2000 || selectionIn(names).selection !== null) return null;
  await calm();
  const lines = new TextDecoder().decode(await bytes(names, "fragments.tsv", signal)).split("\n");
  const column = lines[0].split("\t").indexOf("bytes");
  return lines.slice(1).filter(Boolean).reduce((sum, line) => sum + Number(line.split("\t")[column]), 0);
}

function ArrayView({ names, schema, state }: { names: Names; schema: Schema; state: URLSearchParams }) {
  const { result: stored } = useWork((signal) => storedBytes(names, schema, signal), [names]);
  const [drawn, setShown] = useState<DenseState | null>(null);
  const onState = useCallback((next: DenseState) => setShown(next), []);
  const isTable = schema.array_type === "dense" && schema.dimensions.length === 1 && schema.files.some((file) => file.path === "arrow/cells.arrow");
  const cells = (schema.shape ?? []).reduce((product, length) => product * length, 1);
  const view = () => schema.attributes.length === 0 ? <p class="quiet">This array has no attributes.</p>
    : schema.array_type === "sparse" ? <SparseView names={names} schema={schema} state={state} />
    : cells === 0 ? <p class="quiet">There are no cells here.</p>
    : <DenseView names={names} schema={schema} state={state} onState={onState} />;
  const tabs: [string, () => preact.JSX.Element][] = [
    ["View", view],
    ...(isTable ? [["Table", () => <TableView names={names} schema={schema} state={state} />] as [string, () => preact.JSX.Element]] : []),
    ["Schema", () => <SchemaView schema={schema} />],
    ["Metadata", () => <MetadataView names={names} />],
    ["Files", () => <FilesView names={names} schema={schema} />],
  ];
  return (
    <>
      <p class="summary">{arrayLine(schema)} · {writesLine(schema, stored ?? null)}</p>
      <TimeSlider names={names} />
      <Tabs tabs={tabs} state={state} />
      <Share names={names} schema={schema} attribute={drawn?.attribute} pick={drawn?.pick} />
    </>
  );
}

function GroupView({ node, state }: { node: Extract<Node, { kind: "group" }>; state: URLSearchParams }) {
  const { names, group, hasVariants } = node;
  const [drawn, setShown] = useState<{ names: Names; schema: Schema; dense: DenseState } | null>(null);
  const levels = levelsOf(group);
  const kind = group.metadata.soma_object_type?.text;
  const main: [string, () => preact.JSX.Element][] = [];
  const { result: grids, error } = useWork(async (signal) => (mayHaveGrids(group) ? gridsOf(names, group, signal) : []), [names]);
  const onState = useCallback((names: Names, schema: Schema, dense: DenseState) => setShown({ names, schema, dense }), []);
  if (levels) main.push(["Image", () => <PyramidView names={names} group={group} levels={levels} state={state} onState={onState} />]);
  if (kind === "SOMAExperiment" && group.members.some((member) => member.name === "obs")) main.push(["Experiment", () => <ExperimentView names={names} state={state} />]);
  if (hasVariants) main.push(["Variants", () => <VariantsView names={names} state={state} />]);
  if (!grids && error === undefined && mayHaveGrids(group)) main.push(["Map", () => <p class="status"><Busy /></p>]);
  else if (grids?.length) main.push(["Map", () => <GridsView names={names} grids={grids} state={state} onState={onState} />]);
  const tabs: [string, () => preact.JSX.Element][] = [
    ...main,
    ["Members", () => <Members names={names} members={group.members} />],
    ["Metadata", () => <MetadataView names={names} metadata={group.metadata} />],
    ["Files", () => <FilesView names={names} />],
  ];
  const count = `${grouped(group.members.length)} member${group.members.length === 1 ? "" : "s"}`;
  return (
    <>
      <p class="summary">{kind ?? (levels ? "image pyramid" : hasVariants ? "dataset of variants" : "group")} · {count}</p>
      <TimeSlider names={names} />
      <Tabs tabs={tabs} state={state} />
      {drawn && <Share names={drawn.names} schema={drawn.schema} attribute={drawn.dense.attribute} pick={drawn.dense.pick} />}
    </>
  );
}

/** Puts the page into the document. */
function begin(): void {
  // The address changes, and with it what a relative URL means.
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (icon) icon.href = new URL("./.tilefs/page/icon.svg", root).href;
  const place = document.createElement("div");
  place.id = "page";
  document.body.append(place);
  render(<Page />, place);
}

// The listing of the folder, which is hidden, may still be on its way.
if (document.body) begin();
else addEventListener("DOMContentLoaded", begin);
