// An image pyramid of TileDB-BioImaging: one picture, for which the level that fits is read.
import { DenseView, type DenseState } from "../dense/view";
import type { Channel, Source } from "../dense/layer";
import { Busy, Trouble, useWork } from "../parts";
import { json, type Names } from "../server";
import type { Group, Schema } from "../schema";

interface Level {
  name: string;
  axes: string;
  shape: number[];
}

/** Returns the levels that a group's metadata names, the finest first; null if it is no pyramid. */
export function levelsOf(group: Group): Level[] | null {
  if (group.metadata.dataset_type?.text !== "bioimg") return null;
  try {
    const levels = JSON.parse(group.metadata.levels?.text ?? "[]") as Level[];
    return levels.length ? levels.sort((a, b) => size(b) - size(a)) : null;
  } catch {
    return null;
  }
}

/** Returns the colours of channels that a group's metadata names, for an attribute; null if there are none. */
export function channelsOf(group: Group, attribute: string): Channel[] | null {
  try {
    const stored = JSON.parse(group.metadata.metadata?.text ?? "{}").channels;
    const channels = (stored?.[attribute] ?? null) as { name?: string; color: Record<string, number>; min?: number; max?: number }[] | null;
    const number = (value: unknown, usual: number) => (Number.isFinite(value) ? Number(value) : usual);
    return channels?.map(({ name, color, min, max }, at) => ({
      name: String(name ?? at), colour: [number(color.red, 255), number(color.green, 255), number(color.blue, 255)], least: number(min, 0), greatest: number(max, 255),
    })) ?? null;
  } catch {
    return null;
  }
}

function size(level: Level): number {
  return level.shape.reduce((product, length) => product * length, 1);
}

export function PyramidView({ names, group, levels, state, onState }: {
  names: Names; group: Group; levels: Level[]; state: URLSearchParams; onState: (names: Names, schema: Schema, state: DenseState) => void;
}) {
  const { result, error } = useWork(async (signal) => {
    const schemas = await Promise.all(levels.map((level) => json<Schema>([...names, level.name], "schema.json", signal)));
    const [first, ...others] = schemas;
    const width = (schema: Schema) => schema.shape?.[schema.dimensions.findIndex((dimension) => /^x$/i.test(dimension.name))] ?? 0;
    const sources: Source[] = others.flatMap((schema, number) => {
      const attribute = schema.attributes.find((one) => one.name === first.attributes[0].name);
      const scale = width(first) / width(schema);
      return attribute && Number.isFinite(scale) && scale >= 1 ? [{ names: [...names, levels[number + 1].name], schema, attribute, scale }] : [];
    });
    return { first, sources, channels: channelsOf(group, first.attributes[0].name) };
  }, [names]);
  if (error !== undefined) return <Trouble error={error} />;
  if (!result) return <p class="status"><Busy /></p>;
  const own = [...names, levels[0].name];
  return <DenseView names={own} schema={result.first} state={state} levels={result.sources} channels={result.channels} onState={(dense) => onState(own, result.first, dense)} />;
}
