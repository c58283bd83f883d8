/* Sends messages between all ranks at once: in all modes, with random sizes and layouts on both sides, in
   memory of malloc and of MPI_Alloc_mem, with and without wildcards, with receives that are posted before
   or after the sends, blocking and nonblocking. All ranks use the same random numbers, so each rank knows
   all messages of a round. */
#include "messages.h"

#include <stdint.h>

enum { ROUNDS = 48, MESSAGES = 40, LAYOUTS = 6, LARGEST = 60000 };

static uint64_t state;

static uint64_t below(uint64_t bound)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

/* The layout of n integers of 32 bits in memory. The function `at` returns the position of each integer,
   counted in integers. */
struct layout {
    int kind, n;
    MPI_Datatype type;
    MPI_Count count;
};

static int at(const struct layout *layout, int i)
{
    switch (layout->kind) {
    case 0: return i;                          /* side by side */
    case 1: return 2 * i + 1;                  /* every second integer */
    case 2: return i / 4 * 7 + i % 4;          /* blocks of four, gaps of three */
    case 3: return layout->n - 1 - i;          /* backwards */
    case 4: return 3 * i;                      /* elements with a larger extent */
    default: return i + i / 3 * 2 + i / 3 % 2; /* blocks of three at uneven distances */
    }
}

static int span(const struct layout *layout)
{
    int most = 0;
    for (int i = 0; i < layout->n; i++)
        if (at(layout, i) > most) most = at(layout, i);
    return most + 1;
}

static void make(struct layout *layout, int kind, int n)
{
    /* Making a datatype with thousands of blocks takes a long time, so such a layout is replaced. */
    if (kind == 5 && n > 3000) kind = 2;
    if (kind == 3 && n > 20000) kind = 1;
    *layout = (struct layout){.kind = kind, .n = n, .count = 1};
    int *displacements = malloc(((size_t)n / 3 + 2) * sizeof *displacements);
    int *lengths = malloc(((size_t)n / 3 + 2) * sizeof *lengths);
    MPI_Aint place;
    int one = 1, blocks = 0;
    MPI_Datatype element;
    switch (kind) {
    case 0:
        OK(MPI_Type_contiguous(1, MPI_INT32_T, &layout->type));
        layout->count = n;
        break;
    case 1:
        place = 4;
        OK(MPI_Type_vector(n, 1, 2, MPI_INT32_T, &element));
        OK(MPI_Type_create_hindexed(1, &one, &place, element, &layout->type));
        OK(MPI_Type_free(&element));
        break;
    case 2:
        OK(MPI_Type_vector(n / 4, 4, 7, MPI_INT32_T, &element));
        {
            int counts[2] = {1, n % 4};
            MPI_Aint places[2] = {0, (MPI_Aint)(n / 4) * 28};
            MPI_Datatype types[2] = {element, MPI_INT32_T};
            OK(MPI_Type_create_struct(2, counts, places, types, &layout->type));
        }
        OK(MPI_Type_free(&element));
        break;
    case 3:
        place = n > 0 ? (MPI_Aint)(n - 1) * 4 : 0;
        OK(MPI_Type_create_hvector(n, 1, -4, MPI_INT32_T, &element));
        OK(MPI_Type_create_hindexed(1, &one, &place, element, &layout->type));
        OK(MPI_Type_free(&element));
        break;
    case 4:
        OK(MPI_Type_create_resized(MPI_INT32_T, 0, 12, &layout->type));
        layout->count = n;
        break;
    default:
        for (int i = 0; i < n; i += 3, blocks++) {
            displacements[blocks] = at(layout, i);
            lengths[blocks] = n - i < 3 ? n - i : 3;
        }
        OK(MPI_Type_indexed(blocks, lengths, displacements, MPI_INT32_T, &layout->type));
    }
    OK(MPI_Type_commit(&layout->type));
    free(displacements);
    free(lengths);
}

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, PERSISTENT, BLOCKING, MODES };

struct message {
    int from, to, tag, n, mode;
    int send_kind, receive_kind, send_shared, receive_shared;
};

/* The sender's or the receiver's side of a message. */
struct side {
    struct layout layout;
    int shared;
    int32_t *memory;
    MPI_Request request;
};

static int32_t value(int message, int i) { return (int32_t)(message * 1000003 + i * 31 + 7); }

static void open_side(struct side *side, int kind, int n, int shared, int message, int filled)
{
    make(&side->layout, kind, n);
    size_t integers = n == 0 ? 1 : (size_t)span(&side->layout);
    side->shared = shared;
    side->request = MPI_REQUEST_NULL;
    if (shared)
        OK(MPI_Alloc_mem((MPI_Aint)(integers * 4), MPI_INFO_NULL, &side->memory));
    else
        side->memory = malloc(integers * 4);
    for (size_t i = 0; i < integers; i++) side->memory[i] = -77;
    for (int i = 0; filled && i < n; i++) side->memory[at(&side->layout, i)] = value(message, i);
}

static void close_side(struct side *side)
{
    if (side->shared)
        OK(MPI_Free_mem(side->memory));
    else
        free(side->memory);
    OK(MPI_Type_free(&side->layout.type));
}

/* Checks that the data have arrived and the gaps are unchanged. */
static void check_side(struct side *side, int message)
{
    int integers = side->layout.n == 0 ? 1 : span(&side->layout);
    int32_t *expected = malloc((size_t)integers * 4);
    for (int i = 0; i < integers; i++) expected[i] = -77;
    for (int i = 0; i < side->layout.n; i++) expected[at(&side->layout, i)] = value(message, i);
    CHECK(memcmp(expected, side->memory, (size_t)integers * 4) == 0);
    free(expected);
}

static int draw_size(void)
{
    static const int edges[] = {0, 1, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 8192, 16384};
    uint64_t which = below(10);
    if (which < 5) return (int)below(64);
    if (which < 8) return edges[below(sizeof edges / sizeof *edges)];
    return (int)below(which == 8 ? 5000 : LARGEST);
}

static void start_receive(struct side *side, const struct message *message, int wildcard)
{
    const struct layout *layout = &side->layout;
    int source = wildcard == 1 ? MPI_ANY_SOURCE : message->from;
    int tag = wildcard == 2 ? MPI_ANY_TAG : message->tag;
    if (message->mode == PERSISTENT) {
        OK(MPI_Recv_init_c(side->memory, layout->count, layout->type, source, tag, MPI_COMM_WORLD,
                           &side->request));
        OK(MPI_Start(&side->request));
    } else
        OK(MPI_Irecv_c(side->memory, layout->count, layout->type, source, tag, MPI_COMM_WORLD,
                       &side->request));
}

static void start_send(struct side *side, const struct message *message, int ready)
{
    const struct layout *l = &side->layout;
    int to = message->to, tag = message->tag;
    MPI_Comm world = MPI_COMM_WORLD;
    switch (message->mode) {
    case SYNCHRONOUS:
        OK(MPI_Issend_c(side->memory, l->count, l->type, to, tag, world, &side->request));
        break;
    case BUFFERED:
        OK(MPI_Ibsend_c(side->memory, l->count, l->type, to, tag, world, &side->request));
        break;
    case READY:
        if (ready)
            OK(MPI_Irsend_c(side->memory, l->count, l->type, to, tag, world, &side->request));
        else
            OK(MPI_Isend_c(side->memory, l->count, l->type, to, tag, world, &side->request));
        break;
    case PERSISTENT:
        OK(MPI_Send_init_c(side->memory, l->count, l->type, to, tag, world, &side->request));
        OK(MPI_Start(&side->request));
        break;
    case BLOCKING:
        /* If the receive has been posted, a blocking send is safe. Otherwise two ranks might wait for each
           other in blocking sends. */
        if (ready) {
            OK(MPI_Send_c(side->memory, l->count, l->type, to, tag, world));
            break;
        }
        /* fall through */
    default: OK(MPI_Isend_c(side->memory, l->count, l->type, to, tag, world, &side->request));
    }
}

static void round_of_messages(int number)
{
    static struct message messages[MESSAGES];
    static struct side sends[MESSAGES], receives[MESSAGES];
    static MPI_Request requests[2 * MESSAGES];
    static MPI_Status statuses[2 * MESSAGES];
    state = (uint64_t)number * 7919 + 1;
    int wildcard = (int)below(4), first = (int)below(2);
    for (int m = 0; m < MESSAGES; m++) {
        struct message *message = &messages[m];
        message->from = (int)below((uint64_t)size);
        message->to = (int)below((uint64_t)size);
        message->tag = m;
        message->n = draw_size();
        message->mode = (int)below(MODES);
        message->send_kind = (int)below(LAYOUTS);
        message->receive_kind = (int)below(LAYOUTS);
        message->send_shared = (int)below(2);
        message->receive_shared = (int)below(2);
    }
    /* The receives are posted before the sends, or in the same pass as the sends, or after a probe. */
    int early = first == 0 && wildcard != 3;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && early) OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int m = 0; m < MESSAGES; m++) {
            const struct message *message = &messages[m];
            int receive_pass = early ? 0 : 1;
            if (message->to == rank && pass == receive_pass && wildcard != 3) {
                open_side(&receives[m], message->receive_kind, message->n, message->receive_shared, m,
                          0);
                start_receive(&receives[m], message, wildcard);
            }
            if (message->from == rank && pass == 1) {
                open_side(&sends[m], message->send_kind, message->n, message->send_shared, m, 1);
                start_send(&sends[m], message, early);
            }
        }
    }
    if (wildcard == 3) {
        /* The tag of a message is its number, so the status of the probe says which message has arrived. */
        int left = 0;
        for (int m = 0; m < MESSAGES; m++) left += messages[m].to == rank;
        for (; left > 0; left--) {
            MPI_Message matched;
            MPI_Status status;
            OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &matched, &status));
            int m = status.MPI_TAG;
            CHECK(m >= 0 && m < MESSAGES && messages[m].to == rank);
            CHECK(messages[m].from == status.MPI_SOURCE);
            open_side(&receives[m], messages[m].receive_kind, messages[m].n,
                      messages[m].receive_shared, m, 0);
            const struct layout *layout = &receives[m].layout;
            OK(MPI_Mrecv_c(receives[m].memory, layout->count, layout->type, &matched, &status));
            check_status(&status, messages[m].from, m, messages[m].n * 4);
        }
    }
    int n = 0;
    for (int m = 0; m < MESSAGES; m++) {
        if (messages[m].from == rank) requests[n++] = sends[m].request;
        if (messages[m].to == rank && wildcard != 3) requests[n++] = receives[m].request;
    }
    if (number % 3 == 0) {
        OK(MPI_Waitall(n, requests, statuses));
    } else {
        /* Waits for some requests until none is left. */
        static MPI_Request copies[2 * MESSAGES];
        static int indices[2 * MESSAGES];
        memcpy(copies, requests, sizeof copies);
        for (int done = 0;;) {
            int some = 0;
            OK(number % 3 == 1 ? MPI_Waitsome(n, copies, &some, indices, statuses + done)
                               : MPI_Testsome(n, copies, &some, indices, statuses + done));
            if (some == MPI_UNDEFINED) break;
            done += some;
        }
        memcpy(requests, copies, sizeof requests);
    }
    for (int m = 0, i = 0; m < MESSAGES; m++) {
        MPI_Request *request;
        if (messages[m].from == rank) {
            request = &requests[i++];
            if (*request != MPI_REQUEST_NULL) OK(MPI_Request_free(request));
            check_side(&sends[m], m);
            close_side(&sends[m]);
        }
        if (messages[m].to == rank) {
            if (wildcard != 3) {
                request = &requests[i++];
                if (*request != MPI_REQUEST_NULL) OK(MPI_Request_free(request));
            }
            check_side(&receives[m], m);
            close_side(&receives[m]);
        }
    }
}

int main(void)
{
    begin();
    MPI_Count room = (MPI_Count)MESSAGES * (LARGEST * 4 + MPI_BSEND_OVERHEAD);
    void *buffer = malloc((size_t)room);
    OK(MPI_Buffer_attach_c(buffer, room));
    for (int number = 0; number < ROUNDS; number++) {
        round_of_messages(number);
        /* Receives with a wildcard must not match messages of the next round. */
        OK(MPI_Buffer_flush());
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Buffer_detach_c(&buffer, &room));
    free(buffer);
    return end();
}
