// What schema.json and group.json say about a node.
import { isThere, jsonIfThere, list, type Names } from "./server";

export interface Dimension {
  name: string;
  datatype: string;
  unit?: string;
  domain?: [Scalar, Scalar] | null;
  domain_text?: [string, string];
  current_domain?: [Scalar, Scalar];
  current_domain_text?: [string, string];
  tile_extent: Scalar | null;
  shown?: { count: number; first: Scalar; last: Scalar; first_text?: string; last_text?: string; step: number | null };
  files: string[];
  filters: { name: string }[];
}

export interface Attribute {
  name: string;
  datatype: string;
  unit?: string;
  values_per_cell: number | "variable";
  nullable: boolean;
  fill: Scalar | Scalar[];
  enumeration?: string;
  /** Numbers that stand for no value, by the notes of the array. */
  missing?: number[];
  /** A value means `offset` plus `scale` times what is stored, in `valueUnit`. */
  scale?: number;
  offset?: number;
  valueUnit?: string;
  files: string[];
  filters: { name: string }[];
}

/** Values along a dimension, which an array stores beside its cells. */
export interface DimensionLabel {
  name: string;
  datatype: string;
  unit?: string;
  dimension_number: number;
}

/** A number is big if doubles cannot hold it. */
export type Scalar = number | bigint | string | null;

export interface Enumeration {
  name: string;
  count: number;
  ordered: boolean;
  labels?: Scalar[];
}

export interface Schema {
  array_type: "dense" | "sparse";
  format_version: number;
  shape: number[] | null;
  covers?: string;
  rows?: number | null;
  rows_at_most?: number;
  non_empty_domain?: [Scalar, Scalar][];
  allows_duplicates?: boolean;
  tile_order: string;
  cell_order: string;
  time: { until: string | null; last_commit: string | null };
  fragments: number;
  dimensions: Dimension[];
  attributes: Attribute[];
  dimension_labels?: DimensionLabel[];
  enumerations?: Enumeration[];
  files: { path: string; format: string; field?: string; bytes: number | null; listed?: boolean }[];
  /** Files of further attributes, which are only listed with these. */
  files_left_out?: number;
  not_listed: { path: string; reason: string }[];
  not_listed_left_out?: number;
  warnings: string[];
}

export interface Member {
  name: string;
  type: string;
  state?: string;
}

export interface Metadatum {
  type: string;
  count: number;
  text?: string;
  hex?: string;
  values?: Scalar[];
}

export interface Group {
  members: Member[];
  metadata: Record<string, Metadatum>;
  files: { path: string; format: string }[];
  warnings: string[];
}

/** A node of the tree: an array, a group, or any other folder. */
export type Node =
  | { kind: "array"; names: Names; schema: Schema }
  | { kind: "group"; names: Names; group: Group; hasVariants: boolean }
  | { kind: "folder"; names: Names; members: { name: string; type: string; size?: number }[] };

/** The folders of tilefs itself, which are no members. */
const OWN = new Set([".tilefs", ".group"]);

/** Finds out what a folder is. */
export async function open(names: Names, signal?: AbortSignal): Promise<Node> {
  const schema = await jsonIfThere<Schema>(names, "schema.json", signal);
  if (schema) return { kind: "array", names, schema };
  const group = await jsonIfThere<Group>(names, ".group/group.json", signal);
  // A dataset of variants has a folder that is not listed.
  const has = (name: string) => group?.members.some((member) => member.name === name);
  const mayHaveVariants = group?.metadata.dataset_type?.text === "vcf" || (has("data") && has("metadata"));
  const hasVariants = !!mayHaveVariants && (await isThere(names, "vcf/samples.txt", signal));
  if (group) return { kind: "group", names, group, hasVariants };
  const members = (await list(names, signal)).filter((member) => !OWN.has(member.name));
  return { kind: "folder", names, members };
}

/** Returns the extents of the tiles of a dense array; the whole side where it has none. */
export function extents(schema: Schema): number[] {
  const shape = schema.shape ?? [];
  return schema.dimensions.map((dimension, number) =>
    Math.max(1, Math.min(Number(dimension.tile_extent ?? shape[number]) || shape[number], shape[number])),
  );
}

/** Returns the labels of an attribute's enumeration, if it has one and schema.json has them. */
export function labelsOf(schema: Schema, attribute: Attribute): Scalar[] | null {
  return schema.enumerations?.find((one) => one.name === attribute.enumeration)?.labels ?? null;
}
