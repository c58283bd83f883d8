/* Rows of halo exchanges. Each rank has a cube of cells with a halo of one cell. In one exchange,
 * each rank sends six faces and receives six: by messages, by puts between two fences or after post and
 * start, or through a shared window, in which each rank copies the faces of the other rank by a loop; or by messages
 * from Fortran whose data are array sections (section.c), where the other way is to pack the faces by loops.
 *
 * Either the x faces go to the other rank, and the y and z faces to the rank itself (a periodic cube
 * of two ranks), or all six faces go to the other rank. Each face has its own tag. Before every
 * exchange the ranks write the outer layers of the cube anew, and then meet. The time ends when both
 * ranks have received all faces. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACES = 6, FIELDS = 5, DEPTH = 4 };
enum way { MESSAGES, FENCE, POST, SHARED, SECTIONS, WAYS };
static const char *const ways[WAYS] = {"messages", "fence", "post", "shared", "sections"};

struct halo {
  struct row row;
  int rank;
  int partner[FACES];
  struct layout out_layout[FACES], in_layout[FACES];
  MPI_Datatype out[FACES], in[FACES];
  long shift[FACES]; /* bytes from a halo cell to the cell whose value it receives */
  struct buffer cube;
  uint64_t exchanged;
  enum way way;
  int by_hand;        /* whether loops pack the faces, if the way is SECTIONS */
  int is_allocated;   /* whether a window has allocated the cube */
  MPI_Win win;        /* unless the faces are messages */
  MPI_Group partners; /* the ranks that get faces of this rank */
  char *cubes[2];     /* the cubes of both ranks in a shared window */
};

/* A kind of cell: its name in the words of a row, its size in bytes, and the positions of its
 * pieces. */
struct cell {
  const char *name;
  long bytes;
  int pieces;
  long offset[3], length[3];
};

static const struct cell cells[] = {
    {"double", 8, 1, {0}, {8}},
    {"struct", 16, 3, {0, 4, 8}, {1, 4, 8}},
    {"five", 8 * FIELDS, 1, {0}, {8 * FIELDS}},
    /* `fields` has the same memory as `five`, but its datatype describes five fields one after the
     * other. */
    {"fields", 8 * FIELDS, 1, {0}, {8 * FIELDS}},
};

static MPI_Datatype cell_type(const struct cell *cell)
{
  MPI_Datatype made, resized;
  if (strcmp(cell->name, "struct") == 0) {
    int lengths[3] = {1, 1, 1};
    MPI_Aint places[3] = {0, 4, 8};
    MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(3, lengths, places, types, &made);
    MPI_Type_create_resized(made, 0, cell->bytes, &resized);
    MPI_Type_free(&made);
    return resized;
  }
  MPI_Type_contiguous((int)(cell->bytes / 8), MPI_DOUBLE, &made);
  return made;
}

static MPI_Datatype fields_type(const int *sizes, const int *inner, const int *starts)
{
  int all[DEPTH] = {sizes[0], sizes[1], sizes[2], FIELDS};
  int part[DEPTH] = {inner[0], inner[1], inner[2], 1};
  int from[DEPTH] = {starts[0], starts[1], starts[2], 0};
  int ones[FIELDS];
  MPI_Aint places[FIELDS];
  MPI_Datatype fields[FIELDS], made;
  for (int field = 0; field < FIELDS; field++) {
    from[DEPTH - 1] = field;
    ones[field] = 1;
    places[field] = 0;
    MPI_Type_create_subarray(DEPTH, all, part, from, MPI_ORDER_C, MPI_DOUBLE, &fields[field]);
  }
  MPI_Type_create_struct(FIELDS, ones, places, fields, &made);
  for (int field = 0; field < FIELDS; field++)
    MPI_Type_free(&fields[field]);
  return made;
}

/* Returns the datatype of the layer of cells at index `at` of `axis` (axis 2 is x, which varies
 * fastest), and stores the positions of the layer's bytes in `layout`. */
static MPI_Datatype layer(const struct cell *cell, long edge, int axis, long at,
                          struct layout *layout)
{
  int sizes[3], inner[3], starts[3];
  long step = cell->bytes;
  for (int dimension = 2; dimension >= 0; dimension--) {
    sizes[dimension] = (int)edge + 2;
    inner[dimension] = dimension == axis ? 1 : (int)edge;
    starts[dimension] = dimension == axis ? (int)at : 1;
    layout->times[dimension] = inner[dimension];
    layout->stride[dimension] = step;
    layout->start += step * starts[dimension];
    step *= edge + 2;
  }
  for (int piece = 0; piece < cell->pieces; piece++)
    add_piece(layout, cell->offset[piece], cell->length[piece]);
  layout_measure(layout);
  MPI_Datatype made;
  if (strcmp(cell->name, "fields") == 0) {
    made = fields_type(sizes, inner, starts);
  } else if (strcmp(cell->name, "double") == 0) {
    MPI_Type_create_subarray(3, sizes, inner, starts, MPI_ORDER_C, MPI_DOUBLE, &made);
  } else {
    MPI_Datatype element = cell_type(cell);
    MPI_Type_create_subarray(3, sizes, inner, starts, MPI_ORDER_C, element, &made);
    MPI_Type_free(&element);
  }
  MPI_Type_commit(&made);
  return made;
}

static uint64_t stamp(const struct halo *halo, int rank)
{
  return 2 * halo->exchanged + (uint64_t)rank;
}

static void send_faces(struct halo *halo)
{
  MPI_Request requests[2 * FACES];
  /* Data that leaves through a face arrives at the opposite face of the partner, which has the number
   * `face ^ 1`. The tag of a message is the number of the face through which the message leaves. */
  for (int face = 0; face < FACES; face++)
    MPI_Irecv(halo->cube.base, 1, halo->in[face], halo->partner[face], face ^ 1, MPI_COMM_WORLD,
              &requests[face]);
  for (int face = 0; face < FACES; face++)
    MPI_Isend(halo->cube.base, 1, halo->out[face], halo->partner[face], face, MPI_COMM_WORLD,
              &requests[FACES + face]);
  MPI_Waitall(2 * FACES, requests, MPI_STATUSES_IGNORE);
}

static void put_faces(struct halo *halo)
{
  for (int face = 0; face < FACES; face++)
    MPI_Put(halo->cube.base, 1, halo->out[face], halo->partner[face], 0, 1, halo->in[face ^ 1],
            halo->win);
}

/* All ranks meet. What each has stored before is visible to the others afterwards. */
static void meet_in_window(struct halo *halo)
{
  MPI_Win_sync(halo->win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(halo->win);
}

static void exchange(struct halo *halo)
{
  switch (halo->way) {
  case MESSAGES:
    send_faces(halo);
    return;
  case FENCE:
    MPI_Win_fence(MPI_MODE_NOPRECEDE, halo->win);
    put_faces(halo);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, halo->win);
    return;
  case POST:
    MPI_Win_post(halo->partners, 0, halo->win);
    MPI_Win_start(halo->partners, 0, halo->win);
    put_faces(halo);
    MPI_Win_complete(halo->win);
    MPI_Win_wait(halo->win);
    return;
  case SHARED:
    meet_in_window(halo);
    for (int face = 0; face < FACES; face++)
      copy_bytes(&halo->in_layout[face], halo->cube.base, halo->cubes[halo->partner[face]],
                 halo->shift[face]);
    meet_in_window(halo);
    return;
  case SECTIONS:
    if (halo->by_hand)
      section_halo_by_hand();
    else if (section_supported())
      section_halo();
    return;
  case WAYS:
    return;
  }
}

static double sample(struct row *row, long ignored)
{
  struct halo *halo = (struct halo *)row;
  (void)ignored;
  halo->exchanged++;
  for (int face = 0; face < FACES; face++)
    fill(&halo->out_layout[face], halo->cube.base, stamp(halo, halo->rank));
  meet();
  double start = now_ns();
  exchange(halo);
  meet();
  return now_ns() - start;
}

static double sample_by_hand(struct row *row, long ignored)
{
  struct halo *halo = (struct halo *)row;
  halo->by_hand = 1;
  double ns = sample(row, ignored);
  halo->by_hand = 0;
  return ns;
}

static const char *verify(struct row *row)
{
  static char fault[80];
  struct halo *halo = (struct halo *)row;
  if (halo->way == SECTIONS && !section_supported())
    return "the library has no sections (MPI_SUBARRAYS_SUPPORTED is .FALSE.)";
  for (int face = 0; face < FACES; face++) {
    long wrong = check(&halo->in_layout[face], halo->cube.base,
                       stamp(halo, halo->partner[face]), halo->shift[face]);
    if (wrong >= 0) {
      snprintf(fault, sizeof fault, "rank %d received a wrong byte at %ld of face %d", halo->rank,
               wrong, face);
      return fault;
    }
  }
  return NULL;
}

static void release(struct row *row)
{
  struct halo *halo = (struct halo *)row;
  for (int face = 0; face < FACES; face++) {
    MPI_Type_free(&halo->out[face]);
    MPI_Type_free(&halo->in[face]);
  }
  if (halo->way == SHARED)
    MPI_Win_unlock_all(halo->win);
  if (halo->win != MPI_WIN_NULL) {
    MPI_Win_free(&halo->win);
    MPI_Group_free(&halo->partners);
  }
  if (!halo->is_allocated)
    buffer_free(&halo->cube);
  free(halo);
}

/* Makes the window of the cube. */
static void open_window(struct halo *halo, long bytes, int from_mpi, int remote)
{
  MPI_Group all;
  int first = remote ? 1 - halo->rank : 0, count = remote ? 1 : 2, ranks[2] = {first, 1};
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, count, ranks, &halo->partners);
  MPI_Group_free(&all);
  halo->is_allocated = from_mpi || halo->way == SHARED;
  if (halo->way != SHARED) {
    window_make(&halo->cube, &halo->win, bytes, from_mpi, 64);
    return;
  }
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &halo->cube.base, &halo->win);
  memset(halo->cube.base, 0, (size_t)bytes);
  for (int rank = 0; rank < 2; rank++) {
    MPI_Aint size;
    int unit;
    MPI_Win_shared_query(halo->win, rank, &size, &unit, &halo->cubes[rank]);
  }
  MPI_Win_lock_all(0, halo->win);
}

/* Words: user|alloc double|struct|five|fields EDGE mixed|remote [messages|fence|post|shared|sections] */
struct row *halo_row(char *words, int rank)
{
  struct halo *halo = calloc(1, sizeof *halo);
  char *memory = strsep(&words, " "), *name = strsep(&words, " "), *edges = strsep(&words, " ");
  if (halo == NULL || words == NULL)
    die("a halo needs a kind of memory, a kind of cell, an edge and partners");
  char *partners = strsep(&words, " ");
  if (words != NULL)
    while (halo->way < WAYS && strcmp(ways[halo->way], words) != 0)
      halo->way++;
  if (halo->way == WAYS)
    die("a halo by %s: it must be messages, fence, post, shared or sections", words);
  int remote = strcmp(partners, "remote") == 0;
  const struct cell *cell = NULL;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
    if (strcmp(cells[i].name, name) == 0)
      cell = &cells[i];
  long edge = atol(edges);
  if (cell == NULL || edge < 1 || edge > 1000)
    die("a halo of %s cells with edge %ld: the cell must be double, struct, five or fields, and the "
        "edge 1 to 1000",
        name, edge);
  halo->rank = rank;
  long step = cell->bytes;
  for (int axis = 2; axis >= 0; axis--) {
    for (int side = 0; side < 2; side++) {
      int face = 2 * (2 - axis) + side;
      int away = remote || axis == 2;
      halo->partner[face] = away ? 1 - rank : rank;
      halo->out[face] = layer(cell, edge, axis, side == 0 ? 1 : edge, &halo->out_layout[face]);
      halo->in[face] = layer(cell, edge, axis, side == 0 ? 0 : edge + 1, &halo->in_layout[face]);
      /* The halo on the low side receives the highest layer of the partner's cube; the halo on the
       * high side receives the lowest layer. */
      halo->shift[face] = (side == 0 ? edge : -edge) * step;
      halo->row.payload += halo->out_layout[face].payload;
      halo->row.lines += halo->out_layout[face].lines + halo->in_layout[face].lines;
    }
    step *= edge + 2;
  }
  int from_mpi = strcmp(memory, "alloc") == 0;
  halo->win = MPI_WIN_NULL;
  if (halo->way == MESSAGES || halo->way == SECTIONS)
    buffer_make(&halo->cube, step, from_mpi, 64);
  else
    open_window(halo, step, from_mpi, remote);
  halo->row.sample = sample;
  halo->row.verify = verify;
  halo->row.free = release;
  if (halo->way == SECTIONS) {
    if (cell != &cells[0])
      die("sections are for double cells, not %s", name);
    halo->row.other = sample_by_hand;
    halo->row.is_way = 1;
    section_cube(halo->cube.base, (int)edge, halo->partner);
  }
  return &halo->row;
}
