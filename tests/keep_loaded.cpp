// Only in sanitizer builds: keeps loaded libraries loaded. MPI unloads its components at exit, and tests/lsan.supp
// cannot name a leak in an unloaded library.
extern "C" int dlclose(void* /*handle*/) {
  return 0;
}
