#include "launch/launchers.hpp"

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::launch {

// Every launcher is defined in the file with its name, and listed in these two lines.
extern const Planner ranks, torchrun, mpi;
static std::vector<const Planner*> all() {
  return {&ranks, &torchrun, &mpi};
}

const Planner& planner_of(Launcher launcher) {
  std::vector<std::string> names;
  for (const Planner* planner : all()) {
    if (planner->info.launcher == launcher) {
      return *planner;
    }
    names.emplace_back(to_string(planner->info.launcher));
  }
  throw Error::usage(fmt::format("no launcher '{}'", to_string(launcher)), "there are: " + join(names, ", "));
}

}  // namespace remote::launch

namespace remote {

std::vector<LauncherInfo> launchers() {
  std::vector<LauncherInfo> list;
  for (const launch::Planner* planner : launch::all()) {
    list.push_back(planner->info);
  }
  return list;
}

}  // namespace remote
