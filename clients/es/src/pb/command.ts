export * from "../../../../gen/es/throwbar/command/v1/command_pb.js";
