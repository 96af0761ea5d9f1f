#!/usr/bin/env node
"use strict";
// `npx rowplane` is the program `rowplane`.

const { spawn } = require("node:child_process");
const { findProgram } = require("../program.cjs");

let program;
try {
  program = findProgram();
} catch (error) {
  console.error(`rowplane: ${error.message}`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`rowplane: ${error.message}`);
  process.exit(1);
});
child.on("exit", (status, signal) => {
  process.exitCode = status ?? 128 + require("node:os").constants.signals[signal];
});
