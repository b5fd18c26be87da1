// Arrays of a group that lie along other members of it, as variables of netCDF lie along their coordinates.
import { useState } from "preact/hooks";
import { NUMBERED } from "../dense/notes";
import { DenseView, type DenseState } from "../dense/view";
import { Choice } from "../parts";
import { oneOf } from "../address";
import { remember } from "../place";
import { json, type Names } from "../server";
import type { Group, Schema } from "../schema";

/** Names that coordinates usually have; other groups are not examined. */
const COORDINATES = /^(lat|lon|latitude|longitude|x|y|time|easting|northing)$/i;
/** Members that are examined. */
const MOST_EXAMINED = 40;

export interface Grid {
  name: string;
  schema: Schema;
}

/** Returns whether a group may have grids. */
export function mayHaveGrids(group: Group): boolean {
  return group.members.some((member) => member.type === "array" && (COORDINATES.test(member.name) || NUMBERED.test(member.name)));
}

/** Returns the dense arrays of at least two dimensions of which one has the name of a member, or that of an array with numbered names. */
export async function gridsOf(names: Names, group: Group, signal: AbortSignal): Promise<Grid[]> {
  const arrays = group.members.filter((member) => member.type === "array" && !COORDINATES.test(member.name)).slice(0, MOST_EXAMINED);
  const schemas = await Promise.all(arrays.map(({ name }) => json<Schema>([...names, name], "schema.json", signal).catch(() => null)));
  const isMember = (name: string) => group.members.some((member) => member.name === name);
  const hasNumbered = (name: string) => schemas.some((schema, at) => schema && NUMBERED.test(arrays[at].name) && schema.dimensions.length === 1 && schema.dimensions[0].name === name);
  const isGrid = (schema: Schema) => schema.array_type === "dense" && schema.attributes.length > 0 && schema.dimensions.length > 1
    && (schema.dimensions.some((dimension) => isMember(dimension.name)) || schema.dimensions.some((dimension) => hasNumbered(dimension.name)));
  return arrays.flatMap(({ name }, at) => (schemas[at] && isGrid(schemas[at]) ? [{ name, schema: schemas[at] }] : []));
}

export function GridsView({ names, grids, state, onState }: {
  names: Names; grids: Grid[]; state: URLSearchParams; onState: (names: Names, schema: Schema, state: DenseState) => void;
}) {
  const [chosen, setChosen] = useState(() => oneOf(state, "variable", grids.map((grid) => grid.name)) ?? grids[0].name);
  const { name, schema } = grids.find((grid) => grid.name === chosen) ?? grids[0];
  const own = [...names, name];
  return (
    <>
      {grids.length > 1 && <div class="controls"><Choice label="Variable" value={name} options={grids.map((grid) => [grid.name, NUMBERED.test(grid.name) ? grid.schema.attributes.map((one) => one.name).join(", ") : grid.name])} onChange={(value) => {
        setChosen(value);
        remember({ variable: value });
      }} /></div>}
      <DenseView key={name} names={own} schema={schema} state={state} onState={(dense) => onState(own, schema, dense)} />
    </>
  );
}
