package schema_test

// reference is the set of thirteen tools that other systems were measured on, with the same texts.
const reference = `
enum Color { COLOR_UNSPECIFIED=0; COLOR_GREY=1; COLOR_BLUE=2; COLOR_RED=3; COLOR_YELLOW=4; COLOR_GREEN=5; COLOR_PINK=6;
  COLOR_PURPLE=7; COLOR_CYAN=8; COLOR_ORANGE=9; }
// Close tabs for good. Save them first if the user may want them back.
message CloseTabs {
  // Ids of the tabs to close, from listTabs or searchTabs.
  repeated string tab_ids=1 [(buf.validate.field).repeated={min_items:1,max_items:500,unique:true}];
}
// Open a web page in a new tab.
message OpenTab {
  // Absolute address to open.
  string url=1 [(buf.validate.field).string={uri:true,max_len:2048}, (buf.validate.field).required=true];
  // Device to open it on.
  string device_id=2 [(buf.validate.field).required=true];
  // Window to open it in; the focused one if left out.
  optional string window_id=3;
}
// Bring one tab to the front.
message ActivateTab {
  // Id of the tab.
  string tab_id=1 [(buf.validate.field).required=true];
}
// Store tabs so that they can be restored later; does not close them.
message SaveTabs {
  // Ids of the tabs to save.
  repeated string tab_ids=1 [(buf.validate.field).repeated={min_items:1,max_items:500}];
}
// Put tabs together in a named, coloured group.
message GroupTabs {
  // Ids of the tabs to group.
  repeated string tab_ids=1 [(buf.validate.field).repeated={min_items:1,max_items:500}];
  // Name shown on the group.
  optional string title=2 [(buf.validate.field).string.max_len=80];
  // Colour of the group.
  optional Color color=3;
}
// Pin or unpin tabs.
message PinTabs {
  // Ids of the tabs.
  repeated string tab_ids=1 [(buf.validate.field).repeated.min_items=1];
  // True pins, false unpins.
  bool pinned=2;
}
// Mute or unmute tabs.
message MuteTabs {
  // Ids of the tabs.
  repeated string tab_ids=1 [(buf.validate.field).repeated.min_items=1];
  // True mutes, false unmutes.
  bool muted=2;
}
// Load tabs again.
message ReloadTabs {
  // Ids of the tabs.
  repeated string tab_ids=1 [(buf.validate.field).repeated.min_items=1];
  // Skip the cache.
  optional bool bypass_cache=2;
}
// Find tabs by words in their title or address.
message SearchTabs {
  // Words to look for.
  string query=1 [(buf.validate.field).string={min_len:1,max_len:200}];
  // Only this device; all if left out.
  optional string device_id=2;
}
// List all open tabs of one device or of all devices.
message ListTabs {
  // Only this device; all if left out.
  optional string device_id=1;
}
// List the browser windows of a device.
message ListWindows {
  // Device whose windows to list.
  string device_id=1 [(buf.validate.field).required=true];
}
// List the devices that are connected now.
message ListDevices {}
// Count open tabs per domain, largest first.
message CountByDomain {
  // Only this device; all if left out.
  optional string device_id=1;
}
`
