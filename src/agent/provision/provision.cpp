#include "agent/provision/provision.hpp"

#include <optional>
#include <vector>

#include "agent/facts/disks.hpp"
#include "agent/host/variables.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/install_packages.hpp"
#include "agent/provision/make_environment.hpp"
#include "agent/provision/python_place.hpp"
#include "agent/provision/steps.hpp"

namespace remote::agent {
namespace {

// The file systems that installers write to.
std::vector<DiskFacts> read_disks_of_installers(const Host& host, const PythonPlace& place) {
  const std::string temporary = host.variable("TMPDIR");
  std::vector<DiskFacts> disks;
  for (const auto& [what, folder] :
       {std::pair(wire::DiskPlace::tmp, temporary.empty() ? Path("/tmp") : host.expand(temporary)),
        std::pair(wire::DiskPlace::environment, place.folder())}) {
    if (auto disk = read_disk(host, what, folder)) {
      disks.push_back(std::move(*disk));
    }
  }
  return disks;
}

}  // namespace

void answer_provision(const Host& host, const wire::Provisioning& work, Stream& stream) {
  wire::ProvisionEnd end;
  const PythonPlace place(host, work.python);
  std::optional<Steps> steps;
  try {
    steps.emplace(add_variables(host, work.python.variables), work.python.prologue, stream);
    if (work.setup) {
      make_environment(*steps, place, *work.setup);
    }
    if (work.packages) {
      install_packages(*steps, place, *work.packages);
    }
  } catch (const ProvisionError& error) {
    end.failure = error.describe();
    if (steps && end.failure->hint.empty()) {
      end.failure->disks = read_disks_of_installers(steps->host(), place);
    }
  }
  stream.send(wire::ProvisionReply{.end = end});
}

}  // namespace remote::agent
