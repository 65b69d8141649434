// The library that the module needs. The build puts it where no loader looks.
extern "C" int harness_test_library() {
  return 1;
}
