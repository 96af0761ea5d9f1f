import rowplane from "./index.cjs";

export const { ApiError, Cluster, Fork, Server, Snapshot, StartError, findProgram } = rowplane;
