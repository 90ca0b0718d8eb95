#include "agent/tree/trees.hpp"

#include <cstdio>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/start.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/own_folder.hpp"
#include "agent/tree/tree_store.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// Runs `work` on the locked store. If it fails, or the lock is taken, a later call does the work.
void use_store(const Host& host, const JobsFolder& folder, void (*work)(const TreeStore&)) {
  if (!is_closed_folder(folder.jobs / ".trees")) {
    return;
  }
  try {
    TreeStore store(host, folder);
    if (store.lock(host, false)) {
      work(store);
    }
  } catch (const std::exception&) {
  }
}

void land_now(const Host& host, const JobsFolder& folder) {
  use_store(host, folder, [](const TreeStore& store) { store.land_all(); });
}

}  // namespace

bool use_tree(const Host& host, const JobsFolder& folder, const std::string& id) {
  const Path file = folder.jobs / id / "tree";
  if (!has_entry(file)) {
    return true;
  }
  const std::string tree(trim(read_job_line(file).value_or("")));
  const std::string machine = read_host_name(host);
  const Path trees = folder.jobs / ".trees";
  if (!wire::is_digest(tree) || machine.empty() ||
      !write_job_file(trees / (tree + ".jobs") / id, machine + "\n", O_TRUNC)) {
    return false;
  }
  ::unlink((trees / (tree + ".starting")).c_str());
  return true;
}

bool leave_tree(const JobsFolder& folder, const std::string& id) {
  const std::string tree(trim(read_job_line(folder.jobs / id / "tree").value_or("")));
  if (!wire::is_digest(tree)) {
    return false;
  }
  const Path mark = folder.jobs / ".trees" / (tree + ".jobs") / id;
  return has_entry(mark) && ::rename(mark.c_str(), (mark.string() + ".done").c_str()) == 0;
}

void land_own_tree(const Host& host, const JobsFolder& folder, const std::string& id) {
  const std::string tree(trim(read_job_line(folder.jobs / id / "tree").value_or("")));
  for (const std::string& other : list_names(folder.jobs / ".trees" / (tree + ".jobs"))) {
    if (!other.ends_with(".done") && is_folder(folder.jobs / other) &&
        !read_own_history(folder.jobs / other).has_ended()) {
      return;
    }
  }
  land_now(host, folder);
}

void land_trees(const Host& host, const JobsFolder& folder) {
  if (is_closed_folder(folder.jobs / ".trees")) {
    start_apart(host, {.argv = {host.system("/proc/self/exe"), "land-trees", folder.jobs}, .folder = "/"});
  }
}

int run_land_trees(const char* jobs_folder) {
  const Path jobs = jobs_folder;
  land_now(Host::of_this_process(), {.project = jobs.parent_path(), .jobs = jobs});
  return 0;
}

void drop_trees(const Host& host, const JobsFolder& folder) {
  use_store(host, folder, [](const TreeStore& store) {
    store.land_all();
    store.drop_all();
    store.land_all();
  });
}

}  // namespace remote::agent
