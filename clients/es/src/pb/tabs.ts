export * from "../../../../gen/es/throwbar/command/v1/tabs_pb.js";
