#include "agent/provision/provision.hpp"

#include "agent/provision/failure.hpp"
#include "agent/provision/install_packages.hpp"
#include "agent/provision/make_environment.hpp"
#include "agent/provision/python_place.hpp"
#include "agent/provision/steps.hpp"

namespace remote::agent {

void answer_provision(const Host& host, const wire::Provisioning& work, Stream& stream) {
  wire::ProvisionEnd end;
  try {
    const PythonPlace place(host, work.python);
    Steps steps(host, work.python.prologue, stream);
    if (work.setup) {
      make_environment(steps, place, *work.setup);
    }
    if (work.packages) {
      install_packages(steps, place, *work.packages);
    }
  } catch (const ProvisionError& error) {
    end.failure = error.describe();
  }
  stream.send(wire::ProvisionReply{.end = end});
}

}  // namespace remote::agent
