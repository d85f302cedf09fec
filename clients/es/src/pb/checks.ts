export * from "../../../../gen/es/throwbar/command/v1/checks.js";
