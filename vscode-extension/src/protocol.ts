// What the server answers beyond the protocol of language servers: its commands, and the data that they give.

/** A line, counted from one, of a document. */
export interface Place {
  uri: string;
  line: number;
}

/** One object or value of a Module, as `nnx-lint graph --format json` describes it. */
export interface Node {
  name: string;
  path: (string | number | null)[];
  kind: "module" | "variable" | "array" | "container" | "value" | "choice" | "reference" | "unknown";
  type: string;
  qualified?: string;
  status?: "data" | "static";
  arguments?: string;
  shape?: (number | string)[];
  dtype?: string;
  optional?: string;
  rule?: string;
  note?: string;
  folded?: boolean;
  count?: number | null;
  parameters?: number;
  bytes?: number;
  target?: (string | number | null)[];
  recursive?: boolean;
  assigned?: Place;
  defined?: Place;
  children?: Node[];
}

/** The answer of `nnx.graph`: `class` and `root`, or the Modules of the document where none was asked for. */
export interface Structure {
  class: string | null;
  root?: Node;
  modules?: { name: string; defined?: Place }[];
}

/** What `nnx.graph` is asked for: the class around a position, or one by its name. */
export type StructureQuery =
  | { uri: string; position: { line: number; character: number } }
  | { uri: string; class: string };

/** One line of the answer of `nnx.rules`. */
export interface RuleName {
  code: string;
  name: string;
  summary: string;
}

/** The answer of `nnx.explainRule`. */
export interface RulePage {
  code: string;
  name: string;
  markdown: string;
}

export const GRAPH = "nnx.graph";
export const EXPLAIN_RULE = "nnx.explainRule";
export const RULES = "nnx.rules";
