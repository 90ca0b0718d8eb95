#pragma once

#include <string>
#include <vector>

#include "cli/show/launches.hpp"

// Jobs as a table for people.

namespace remote::cli {

struct TableRow {
  Batch batch;
  bool dim = false;
};

ui::Style style_of(JobState state);

struct TableOptions {
  bool ranks = false;  // a row each rank, not each launch
  bool past = false;   // without what only counts while jobs run, and what they have in common: tags, command
  bool ids = false;    // a column with the beginnings of the ids of jobs, and of launches in a launch's row
};

// Of the tags of a launch or a job those that a person gave: the usual ones are the words of the command, and
// a few more.
std::vector<std::string> given_tags(std::vector<std::string> tags, const std::string& command);

// What is to say below the table: what is silent for long, each with the command that shows where it is, and
// why jobs wait where the table has no room for that, and what the newest used of what they had.
std::vector<std::string> row_notices(const std::vector<TableRow>& rows);

// For stdout, with a newline at its end.
std::string job_table(const Context& context, const std::vector<TableRow>& rows, const TableOptions& options);

}  // namespace remote::cli
