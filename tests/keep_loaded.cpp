// Part of the programs of a sanitizer build only: a library that was loaded stays. MPI unloads its components at the
// end, and a leak in an unloaded library has no name that tests/lsan.supp could give.
extern "C" int dlclose(void* /*handle*/) {
  return 0;
}
