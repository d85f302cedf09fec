export * from "../../../../gen/es/throwbar/device/v1/device_pb.js";
