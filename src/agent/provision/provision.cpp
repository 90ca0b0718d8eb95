#include "agent/provision/provision.hpp"

#include <optional>

#include "agent/facts/disks.hpp"
#include "agent/host/variables.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/install_packages.hpp"
#include "agent/provision/make_environment.hpp"
#include "agent/provision/python_place.hpp"
#include "agent/provision/steps.hpp"

namespace remote::agent {

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
      // The disks that installers write to.
      end.failure->disks =
          read_disks(steps->host(), {.environment = place.folder().string(),
                                     .disks = {wire::DiskPlace::tmp, wire::DiskPlace::environment}});
    }
  }
  stream.send(wire::ProvisionReply{.end = end});
}

}  // namespace remote::agent
