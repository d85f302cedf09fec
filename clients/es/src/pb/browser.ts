export * from "../../../../gen/es/throwbar/control/v1/browser_pb.js";
