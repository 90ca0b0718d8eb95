#include "jobs/start_script.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"

namespace remote::jobs {
namespace {

wire::Variable to_wire(const Env::value_type& variable) {
  const auto& [name, value] = variable;
  check_variable(name);
  if (name == cookie_name) {
    throw Error::usage(fmt::format("cannot set the variable '{}'", name),
                       "it identifies the processes of a job", "leave it out: every job gets its own");
  }
  check_value(value);
  return {name, value};
}

std::optional<wire::JobContainer> to_wire(const std::optional<servers::ContainerRun>& run) {
  if (!run) {
    return std::nullopt;
  }
  const Container& container = run->container;
  wire::JobContainer result{.engine = servers::engine_word(container),
                            .image = container.image,
                            .is_rootless = run->rootless,
                            .args = container.args,
                            .prologue = run->prologue,
                            .workdir = container.workdir};
  check_value(result.image);
  check_value(result.workdir);
  std::ranges::for_each(result.args, check_value);
  return result;
}

std::vector<wire::Variable> to_wire(const Env& env) {
  std::vector<wire::Variable> variables;
  for (const Env::value_type& variable : env) {
    variables.push_back(to_wire(variable));
  }
  return variables;
}

// The spec of the first job, without variables.
wire::JobSpec make_common(const RemoteFolder& folder, const servers::ProcessSpec& process, bool is_leased) {
  check_value(process.command);
  check_value(process.activate);
  return {.project = folder.project,
          .defaults = to_wire(process.defaults),
          .activate = process.activate,
          .environment = process.environment,
          .startup_files = process.startup_files,
          .tree = process.tree,
          .container = to_wire(process.container),
          .programs = process.programs,
          .is_leased = is_leased,
          .command = process.command};
}

// Whether all of these jobs set the variable once, to the same value.
bool is_common(const Env::value_type& variable, const std::vector<StartRequest>& requests) {
  return std::ranges::all_of(requests, [&](const StartRequest& request) {
    const Env& env = request.process.env;
    return std::ranges::count(env, variable.first, &Env::value_type::first) == 1 &&
           std::ranges::find(env, variable) != env.end();
  });
}

}  // namespace

JobSpecs make_specs(const RemoteFolder& folder, const std::vector<StartRequest>& requests, bool is_leased) {
  JobSpecs specs;
  for (const StartRequest& request : requests) {
    wire::JobSpec spec = make_common(folder, request.process, is_leased);
    if (specs.own.empty()) {
      specs.common = spec;
      for (const Env::value_type& variable : request.process.env) {
        if (is_common(variable, requests)) {
          specs.common.variables.push_back(to_wire(variable));
        }
      }
    }
    wire::OwnSpec& own = specs.own.emplace_back();
    for (const Env::value_type& variable : request.process.env) {
      wire::Variable each = to_wire(variable);
      if (std::ranges::find(specs.common.variables, each) == specs.common.variables.end()) {
        own.variables.push_back(std::move(each));
      }
    }
    if (spec.command != specs.common.command) {
      own.command = spec.command;
    }
    if (spec.activate != specs.common.activate || spec.environment != specs.common.environment) {
      own.activate = spec.activate.empty() ? "\n" : spec.activate;
    }
    spec.variables = specs.common.variables;
    spec.command = specs.common.command;
    spec.activate = specs.common.activate;
    spec.environment = specs.common.environment;
    if (spec != specs.common) {
      throw std::logic_error("jobs of one start differ in more than variables, activation and command");
    }
  }
  return specs;
}

}  // namespace remote::jobs
