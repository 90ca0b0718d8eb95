#include "jobs/select.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::jobs {
namespace {

constexpr std::size_t shortest_id_start = 4;
constexpr std::size_t most_listed = 5;

std::string list_keys(const std::vector<const Job*>& jobs) {
  std::vector<std::string> keys;
  for (const Job* job : jobs) {
    if (keys.size() == most_listed) {
      keys.emplace_back("…");
      break;
    }
    keys.push_back(std::to_string(job->key));
  }
  return join(keys, ", ");
}

std::string nearest_keys(const std::vector<Job>& jobs, int key) {
  std::vector<const Job*> near;
  std::ranges::transform(jobs, std::back_inserter(near), [](const Job& job) { return &job; });
  std::ranges::stable_sort(
      near, {}, [&](const Job* job) { return std::llabs(static_cast<long long>(job->key) - key); });
  near.resize(std::min(near.size(), most_listed));
  std::ranges::sort(near, {}, &Job::key);
  return list_keys(near);
}

[[noreturn]] void refuse(const std::vector<Job>& jobs, const std::string& name, const std::string& what) {
  const auto key = parse_number<int>(name);
  if (jobs.empty()) {
    throw Error::usage(what, "there are no jobs").mended_by(Remedy::start_job);
  }
  const bool of_id = name.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!key && !of_id) {
    throw Error::usage(what,
                       "a job is named by its key (a number), the start of its id or the name of its launch")
        .mended_by(Remedy::list_jobs);
  }
  if (!key && name.size() < shortest_id_start) {
    throw Error::usage(what, fmt::format("an id's start needs {} digits or more", shortest_id_start))
        .mended_by(Remedy::list_jobs);
  }
  throw Error::usage(what, "no job has this key or an id that begins with it",
                     "the nearest keys are " + nearest_keys(jobs, key.value_or(0)))
      .mended_by(Remedy::list_jobs);
}

// `kind`: what the name refers to, for errors.
const Job& find_named(const std::vector<Job>& jobs, const std::string& name, std::string_view kind = "job") {
  const auto key = parse_number<int>(name);
  std::vector<const Job*> found;
  const auto find = [&](const auto& fits) {
    for (const Job& job : jobs) {
      if (fits(job)) {
        found.push_back(&job);
      }
    }
  };
  find([&](const Job& job) { return key == job.key; });
  if (found.empty() && name.size() >= shortest_id_start) {
    find([&](const Job& job) { return job.id.text().starts_with(name); });
  }
  if (found.size() == 1) {
    return *found.front();
  }
  const std::string what = fmt::format("no {} '{}'", kind, name);
  if (found.size() > 1) {
    std::vector<std::string> ids;
    for (const Job* job : found) {
      ids.push_back(fmt::format("{} (id {:.8}…)", job->key, job->id.text()));
    }
    throw Error::usage(what, "it fits several: " + join(ids, ", "),
                       "name one by its key or by more of its id");
  }
  refuse(jobs, name, what);
}

bool has_all(const Job& job, const std::vector<std::string>& tags) {
  return std::ranges::all_of(tags, [&](const std::string& tag) { return job.has_tag(tag); });
}

const Job* newest(const std::vector<const Job*>& jobs) {
  const auto found =
      std::ranges::max_element(jobs, {}, [](const Job* job) { return std::pair(job->created_at, job->key); });
  return found == jobs.end() ? nullptr : *found;
}

// The newest job that matches; throws if there is none.
const Job& find_last(const std::vector<Job>& jobs, const JobSelection& selection) {
  std::vector<const Job*> fitting;
  for (const Job& job : jobs) {
    if (has_all(job, selection.tags) && (selection.hidden || !job.hidden)) {
      fitting.push_back(&job);
    }
  }
  if (const Job* job = newest(fitting)) {
    return *job;
  }
  throw nothing_selected(jobs, {.tags = selection.tags});
}

// The newest launch with a matching job.
JobId find_last_launch(const std::vector<Job>& jobs, const JobSelection& selection) {
  std::vector<const Job*> ranks;
  for (const Job& job : jobs) {
    if (job.launch && has_all(job, selection.tags) && (selection.hidden || !job.hidden)) {
      ranks.push_back(&job);
    }
  }
  if (const Job* job = newest(ranks)) {
    return *job->launch;
  }
  throw Error::usage("no launch 'last'", selection.tags.empty()
                                             ? "there are no launches"
                                             : "no launch has the tags " + join(selection.tags, ", "))
      .mended_by(Remedy::start_launch);
}

std::set<JobId> launches_by_id(const std::vector<Job>& jobs, const std::string& start) {
  std::set<JobId> found;
  for (const Job& job : jobs) {
    if (job.launch && job.launch->text().starts_with(start)) {
      found.insert(*job.launch);
    }
  }
  return found;
}

JobId find_launch(const std::vector<Job>& jobs, const std::string& name, const JobSelection& selection) {
  if (name == "last") {
    return find_last_launch(jobs, selection);
  }
  const std::string what = fmt::format("no launch '{}'", name);
  if (const std::size_t dash = name.find('-'); dash != std::string::npos && dash > 0) {
    const JobId launch = find_launch(jobs, name.substr(0, dash), selection);
    if (launch != find_launch(jobs, name.substr(dash + 1), selection)) {
      throw Error::usage(what, "these are jobs of two launches").mended_by(Remedy::list_jobs);
    }
    return launch;
  }
  const auto key = parse_number<int>(name);
  const bool is_key = key && std::ranges::any_of(jobs, [&](const Job& job) { return job.key == *key; });
  if (!is_key && name.size() >= shortest_id_start) {
    const std::set<JobId> found = launches_by_id(jobs, name);
    if (found.size() == 1) {
      return *found.begin();
    }
    if (found.size() > 1) {
      throw Error::usage(what, "several ids begin so", "give more of the id, or the key of one of its jobs");
    }
  }
  const Job& job = find_named(jobs, name, "launch");
  if (!job.launch) {
    throw Error::usage(what, fmt::format("job {} is not part of a launch", job.key))
        .mended_by(Remedy::name_job, std::to_string(job.key));
  }
  return *job.launch;
}

}  // namespace

std::vector<Job> select(const std::vector<Job>& jobs, const JobSelection& selection) {
  std::set<JobId> named;
  std::set<JobId> launches;
  for (const std::string& name : selection.names) {
    const Job& job = name == "last" ? find_last(jobs, selection) : find_named(jobs, name);
    if (name == "last" && job.launch) {
      launches.insert(*job.launch);
    } else {
      named.insert(job.id);
    }
  }
  for (const std::string& name : selection.launches) {
    launches.insert(find_launch(jobs, name, selection));
  }
  const bool all = named.empty() && launches.empty();
  std::vector<Job> chosen;
  for (const Job& job : jobs) {
    const bool is_named = named.contains(job.id) || (job.launch && launches.contains(*job.launch));
    if ((all || is_named) && (is_named || selection.hidden || !job.hidden) && has_all(job, selection.tags)) {
      chosen.push_back(job);
    }
  }
  return chosen;
}

Error nothing_selected(const std::vector<Job>& jobs, const JobSelection& selection) {
  if (jobs.empty()) {
    return Error::usage("no job to act on", "there are no jobs").mended_by(Remedy::start_job);
  }
  std::set<std::string> known;
  for (const Job& job : jobs) {
    known.insert(job.tags.begin(), job.tags.end());
  }
  for (const std::string& tag : selection.tags) {
    if (!known.contains(tag)) {
      const std::string near = did_you_mean(tag, {known.begin(), known.end()});
      return Error::usage("no job to act on", fmt::format("no job has the tag '{}'", tag), near)
          .mended_by(near.empty() ? Remedy::list_jobs : Remedy::none);
    }
  }
  const std::string reason =
      selection.tags.empty() ? "no job fits" : "no job has the tags " + join(selection.tags, ", ");
  return Error::usage("no job to act on", reason).mended_by(Remedy::list_jobs);
}

Job default_to_follow(const std::vector<Job>& jobs, const std::vector<std::string>& tags) {
  std::vector<const Job*> running;
  std::vector<const Job*> running_masters;
  std::vector<const Job*> running_others;
  std::vector<const Job*> starting;
  std::vector<const Job*> ended;
  for (const Job& job : jobs) {
    const bool master = job.has_tag("master");
    const bool fits = has_all(job, tags) && (master || !tags.empty());
    if (job.state == JobState::running || job.state == JobState::unknown) {
      running.push_back(&job);
      if (fits) {
        (master ? running_masters : running_others).push_back(&job);
      }
    } else if (fits) {
      (is_final(job.state) ? ended : starting).push_back(&job);
    }
  }
  for (const auto* group : {&running_masters, &running_others, &starting}) {
    if (const Job* job = newest(*group)) {
      return *job;
    }
  }
  if (const Job* job = tags.empty() ? nullptr : newest(ended)) {
    const auto master = std::ranges::find_if(ended, [&](const Job* one) {
      return one->launch && one->launch == job->launch && one->has_tag("master");
    });
    return master == ended.end() ? *job : **master;
  }
  const std::string tagged = tags.empty() ? "master" : join(tags, ", ");
  const std::string reason =
      running.empty() ? "no job is running"
                      : fmt::format("no running job is tagged {}; running: {}", tagged, list_keys(running));
  const Job* likely = newest(running);
  std::string hint;
  if (likely != nullptr) {
    hint = fmt::format("the newest is job {}", likely->key);
  } else if ((likely = newest(ended)) != nullptr) {
    hint =
        fmt::format("the last one tagged {} was job {} ({})", tagged, likely->key, to_string(likely->state));
  }
  throw Error::usage("no job to follow", reason, hint)
      .mended_by(Remedy::follow_job, likely == nullptr ? "" : std::to_string(likely->key));
}

}  // namespace remote::jobs
