"use strict";
// The program of this platform, which is in a package of its own: npm installs the one whose `os` and `cpu` fit.

const manifest = require("./package.json");

class StartError extends Error {
  name = "StartError";
}

/** `linux-x64`, with `-musl` where the C library is not glibc. */
function platform() {
  const musl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  return `${process.platform}-${process.arch}${musl ? "-musl" : ""}`;
}

function findProgram() {
  if (process.env.ROWPLANE_PROGRAM) return process.env.ROWPLANE_PROGRAM;
  const needed = `@rowplane/${platform()}`;
  const packages = manifest.optionalDependencies;
  if (!(needed in packages)) {
    const there = Object.keys(packages).join(", ");
    throw new StartError(
      `rowplane ${manifest.version} has no package ${needed} (there is ${there}): ` +
        "build the program with `cargo build --release` from its repository, and name it in ROWPLANE_PROGRAM",
    );
  }
  try {
    return require.resolve(`${needed}/bin/rowplane${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    throw new StartError(
      `the package ${needed} is not installed, which has the program: npm leaves it out with --omit=optional, or when ` +
        `package-lock.json was made on another platform. \`npm install --save-optional ${needed}@${packages[needed]}\` brings it`,
    );
  }
}

module.exports = { StartError, findProgram };
