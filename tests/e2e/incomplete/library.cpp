// A library that the module needs. The build puts it where the loader does not look.
extern "C" int harness_test_library() {
  return 1;
}
