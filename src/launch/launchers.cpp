#include "launch/launchers.hpp"

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::launch {

// Every launcher is defined in the file of its name, and stands in these two lines.
extern const Launcher ranks, torchrun, mpi;
static std::vector<const Launcher*> all() {
  return {&ranks, &torchrun, &mpi};
}

const Launcher& find_launcher(const std::string& name) {
  std::vector<std::string> names;
  for (const Launcher* launcher : all()) {
    if (launcher->info.name == name) {
      return *launcher;
    }
    names.push_back(launcher->info.name);
  }
  throw Error::usage(fmt::format("no launcher '{}'", name), "there are: " + join(names, ", "));
}

}  // namespace remote::launch

namespace remote {

std::vector<LauncherInfo> launchers() {
  std::vector<LauncherInfo> list;
  for (const launch::Launcher* launcher : launch::all()) {
    list.push_back(launcher->info);
  }
  return list;
}

}  // namespace remote
