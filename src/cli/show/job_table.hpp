#pragma once

#include <string>
#include <vector>

#include "cli/show/launches.hpp"

// A table of jobs.

namespace remote::cli {

struct TableRow {
  Batch batch;
  bool dim = false;
};

ui::Style style_of(JobState state);

struct TableOptions {
  bool ranks = false;  // a row per rank instead of per launch
  bool past = false;   // without columns for running jobs, or with equal rows: tags, command
  bool ids = false;  // a column with the first digits of each job's id, or the launch's id in a launch's row
};

// The tags of a launch or a job that the user set, without the automatic ones, which are the words of the
// command and a few more.
std::vector<std::string> given_tags(std::vector<std::string> tags, const std::string& command);

// Notices below the table: jobs that have been silent for long, each with the command that shows why; the
// reasons for waiting that do not fit in the table; and the resources that the newest jobs used.
std::vector<std::string> row_notices(const std::vector<TableRow>& rows);

// For stdout, ending with a newline.
std::string job_table(const Context& context, const std::vector<TableRow>& rows, const TableOptions& options);

}  // namespace remote::cli
