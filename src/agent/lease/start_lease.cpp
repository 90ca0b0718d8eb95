#include "agent/lease/start_lease.hpp"

#include <algorithm>
#include <utility>

#include <sys/stat.h>

#include "agent/host/users.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"

namespace remote::agent {
namespace {

void require_written(bool is_written, Lease& lease) {
  if (!is_written) {
    lease.remove();
    throw LeaseRefused("cannot write in the folders of its jobs: is the disk full?");
  }
}

// ": leased by ada, bob"; "" if there are no users.
std::string name_users(const Host& host, const std::vector<unsigned>& uids) {
  UserNames users(host);
  std::vector<std::string> names;
  for (const unsigned uid : uids) {
    names.push_back(users.find(uid));
  }
  return names.empty() ? "" : ": leased by " + join(names, ", ");
}

Lease take_now(const Host& host, const wire::LeaseTerms& terms, const std::vector<Path>& jobs) {
  Shortage shortage;
  std::optional<TakenLease> taken = take_lease(host, terms, shortage);
  if (!taken) {
    if (shortage.reason == never_enough) {
      throw LeaseRefused(shortage.reason);
    }
    throw LeasedByOthers(shortage.reason + name_users(host, shortage.uids));
  }
  require_written(
      std::ranges::all_of(jobs, [&](const Path& job) { return put_file(job / "devices", taken->devices); }),
      taken->lease);
  return std::move(taken->lease);
}

}  // namespace

Lease take_for_jobs(const Host& host, const JobsFolder& folder, const wire::LeaseToTake& wanted,
                    const std::vector<std::string>& ids) {
  std::vector<Path> jobs;
  for (const std::string& id : ids) {
    jobs.push_back(folder.jobs / id);
  }
  if (!wanted.waits) {
    return take_now(host, wanted.terms, jobs);
  }
  Lease lease = Lease::make(host);
  const std::string queue =
      join({ids.empty() ? "" : ids.front(), wire::to_json_text(wanted), join(ids, " ")}, "\n") + "\n";
  require_written(std::ranges::all_of(jobs,
                                      [&](const Path& job) {
                                        return ::mkfifo((job / ".turn").c_str(), 0600) == 0 &&
                                               put_file(job / "devices", "") &&
                                               put_file(job / "queue", queue);
                                      }),
                  lease);
  return lease;
}

}  // namespace remote::agent
