export * from "../../../../gen/es/throwbar/command/v1/custom_pb.js";
