// Compares the points of a sweep. Contacts no server.

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <remote/sweep.hpp>

#include "base/strings.hpp"
#include "project/report/numbers.hpp"

namespace remote {
namespace {

// The loss that most points have printed; prefers the name "loss".
std::string usual_loss(const SweepResults& results, const std::map<std::string, int>& counts) {
  std::string usual;
  for (const std::string& name : results.numbers) {
    if (project::is_loss(name) && (usual.empty() || std::pair(name == "loss", counts.at(name)) >
                                                        std::pair(usual == "loss", counts.at(usual)))) {
      usual = name;
    }
  }
  return usual;
}

}  // namespace

const double* sweep_number(const Job& job, const std::string& name) {
  const auto found = std::ranges::find(job.point->numbers, name, &NamedNumber::name);
  return found == job.point->numbers.end() ? nullptr : &found->value;
}

SweepBest parse_sweep_best(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string how = text.substr(0, colon);
  const std::string name = colon == std::string::npos ? "" : lower_case(text.substr(colon + 1));
  if ((how != "min" && how != "max") || name.empty()) {
    throw Error::usage(fmt::format("points cannot be compared by '{}'", visible_line(text, 60)), "",
                       "give min or max with the name of a number, such as min:loss or max:acc");
  }
  return {name, how == "min"};
}

SweepResults sweep_results(const std::vector<Job>& jobs, const SweepBest& by) {
  SweepResults results;
  std::map<int, const Job*> newest;
  for (const Job& job : jobs) {
    if (job.point) {
      const Job*& known = newest[job.point->number];
      known = known == nullptr || known->key < job.key ? &job : known;
    }
  }
  std::map<std::string, int> counts;
  for (const auto& [number, job] : newest) {
    results.points.push_back(*job);
    results.launch = job->launch.value_or(results.launch);
    for (const auto& [name, value] : job->point->values) {
      if (std::ranges::find(results.parameters, name) == results.parameters.end()) {
        results.parameters.push_back(name);
      }
    }
    for (const NamedNumber& one : job->point->numbers) {
      if (counts[one.name]++ == 0) {
        results.numbers.push_back(one.name);
      }
    }
  }
  const std::string name = by.name.empty() ? usual_loss(results, counts) : by.name;
  if (counts.contains(name)) {
    results.best_by = SweepBest{name, by.lowest};
  }
  for (std::size_t i = 0; results.best_by && i < results.points.size(); ++i) {
    const Job& job = results.points[i];
    const double* mine = job.state == JobState::succeeded ? sweep_number(job, name) : nullptr;
    const double* best = results.best ? sweep_number(results.points[*results.best], name) : nullptr;
    if (mine != nullptr && (best == nullptr || (by.lowest ? *mine < *best : *mine > *best))) {
      results.best = i;
    }
  }
  return results;
}

}  // namespace remote
