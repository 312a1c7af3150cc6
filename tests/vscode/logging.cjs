// Lets VS Code write its output channels: it does so through a module that has to be compiled (`spdlog`), and nothing
// of the fetched one is. What is preloaded here takes the place of the compiled part alone; all of VS Code is as it is.
const fs = require("node:fs");
const Module = require("node:module");

const LEVELS = ["trace", "debug", "info", "warn", "error", "critical", "off"];

class Logger {
  #file;
  #least = 2;
  #plain = false;

  constructor(_kind, _name, file) {
    this.#file = file;
    for (const [number, level] of LEVELS.slice(0, -1).entries()) {
      this[level] = (text) => number >= this.#least && fs.appendFileSync(file, this.#plain ? text : `[${level}] ${text}\n`);
    }
  }

  getLevel = () => this.#least;
  setLevel = (level) => (this.#least = level);
  clearFormatters = () => (this.#plain = true);
  setPattern() {}
  flush() {}
  drop() {}
}

const compiled = { version: 0, Logger, setLevel() {}, setFlushOn() {} };
const load = Module._load;
Module._load = function (name, parent, ...rest) {
  if (name === "bindings" && parent?.filename?.includes("spdlog")) return () => compiled;
  return load.call(this, name, parent, ...rest);
};
