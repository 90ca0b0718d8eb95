#include "agent/provision/disk_flaw.hpp"

#include "agent/facts/project.hpp"

namespace remote::agent {

ProvisionError explain_failure(const Path& folder, const std::string& reason, const std::string& hint) {
  const std::string flaw = find_flaw_for_packages(folder);
  return flaw.empty() ? ProvisionError(reason, hint)
                      : ProvisionError(reason + ": " + flaw + ": " + folder.string());
}

}  // namespace remote::agent
