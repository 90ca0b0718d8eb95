#include "agent/provision/disk_flaw.hpp"

#include "agent/facts/project.hpp"

namespace remote::agent {

ProvisionError explain_failure(const Path& folder, const std::string& reason, const std::string& hint) {
  ServerFacts facts;
  try_folder(folder, facts);
  return facts.flaw == FolderFlaw::none
             ? ProvisionError(reason, hint)
             : ProvisionError(reason + ": " + facts.flaw_text + ": " + folder.string());
}

}  // namespace remote::agent
