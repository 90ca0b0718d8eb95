#include "agent/job/backend.hpp"

namespace remote::agent {

Backend* Backends::find(const std::string& name) {
  const auto found = known_.find(name);
  if (found != known_.end()) {
    return found->second.get();
  }
  std::unique_ptr<Backend> made;
  if (name == "local") {
    made = make_local_backend(host_, folder_);
  } else if (name == "labml") {
    made = make_labml_backend(host_, folder_);
  } else if (name == "slurm") {
    made = make_slurm_backend(host_, folder_);
  }
  return known_.emplace(name, std::move(made)).first->second.get();
}

JobState Backends::find_state(JobRecord& job, Look look) {
  Backend* const backend = find(job.backend);
  return backend != nullptr
             ? backend->find_state(job, look)
             : JobState{.reason = "this version of remote does not know its backend " + job.backend};
}

void Backends::forget() {
  for (const auto& [name, backend] : known_) {
    if (backend) {
      backend->forget();
    }
  }
}

}  // namespace remote::agent
