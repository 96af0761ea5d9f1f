import rowplane from "./index.cjs";

export const { Server, StartError, findProgram } = rowplane;
